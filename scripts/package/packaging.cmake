# What `cmake --install` puts where, and the Debian packages that `cpack -G DEB` makes of it (scripts/test_package): tgi, and
# tgi-cuda where the plugin was built. Units and paths follow the prefix of the installation, not that of the configuration.
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)  # what is installed has to be built, the tests have not

install(TARGETS tgi tgid RUNTIME DESTINATION bin COMPONENT main)
if(TARGET tgi-cuda)
  install(TARGETS tgi-cuda LIBRARY DESTINATION lib/tgi COMPONENT cuda)  # where base/files/paths.cc looks
endif()

foreach(section 1 5 8)
  file(GLOB pages CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/man/*.${section})
  install(FILES ${pages} DESTINATION share/man/man${section} COMPONENT main)
endforeach()
foreach(program tgi tgid)
  install(FILES completions/${program}.bash DESTINATION share/bash-completion/completions RENAME ${program}
    COMPONENT main)
  install(FILES completions/${program}.fish DESTINATION share/fish/vendor_completions.d COMPONENT main)
endforeach()
file(GLOB documents CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/docs/*.md)
install(FILES README.md ${documents} docs/grafana.json DESTINATION share/doc/tgi COMPONENT main)
install(FILES assets/debian/copyright DESTINATION share/doc/tgi COMPONENT main)

# Known only when it is installed: the prefix. Under /usr, settings are in /etc and completions where Debian has them.
install(CODE "set(TGI_SOURCE \"${CMAKE_SOURCE_DIR}\")\nset(TGI_WORK \"${CMAKE_BINARY_DIR}/install\")" COMPONENT main)
install(SCRIPT scripts/package/install_for_prefix.cmake COMPONENT main)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME tgi)
set(CPACK_PACKAGE_VENDOR "tgi")
set(CPACK_PACKAGE_CONTACT "the maintainers of tgi <maintainers@localhost>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL main)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_SOURCE_DIR}/scripts/package/compress_package.cmake)

set(CPACK_DEBIAN_MAIN_PACKAGE_NAME tgi)
set(CPACK_DEBIAN_MAIN_PACKAGE_DEPENDS adduser)
set(CPACK_DEBIAN_MAIN_PACKAGE_RECOMMENDS ca-certificates)
set(CPACK_DEBIAN_MAIN_DESCRIPTION "text-generation server for large language models
A daemon, tgid, that owns the model, the paged KV cache and the
continuous-batching loop, and one tool, tgi, to talk to it from the terminal
or to serve TGI's and OpenAI's HTTP API.")
set(CPACK_DEBIAN_MAIN_PACKAGE_CONTROL_EXTRA
  ${CMAKE_SOURCE_DIR}/assets/debian/conffiles ${CMAKE_SOURCE_DIR}/assets/debian/postinst
  ${CMAKE_SOURCE_DIR}/assets/debian/prerm ${CMAKE_SOURCE_DIR}/assets/debian/postrm)
if(TARGET tgi-cuda)
  list(APPEND CPACK_COMPONENTS_ALL cuda)
  set(CPACK_DEBIAN_MAIN_PACKAGE_SUGGESTS tgi-cuda)
  set(CPACK_DEBIAN_CUDA_PACKAGE_NAME tgi-cuda)
  set(CPACK_DEBIAN_CUDA_PACKAGE_DEPENDS "tgi (= ${PROJECT_VERSION})")
  set(CPACK_DEBIAN_CUDA_DESCRIPTION "CUDA backend of tgi
The plugin that lets tgid run models on NVIDIA GPUs from Ampere on. Needs the
driver; cuBLASLt and, for several GPUs, NCCL are loaded when they are there.")
endif()
include(CPack)
