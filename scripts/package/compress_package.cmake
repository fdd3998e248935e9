# Run by cpack before it packs: Debian wants man pages and the changelog compressed, always to the same bytes.
file(GLOB_RECURSE files "${CPACK_TEMPORARY_INSTALL_DIRECTORY}/*")
set(pages ${files})
list(FILTER pages INCLUDE REGEX "/share/man/.*[.][158]$")
foreach(page ${pages})
  execute_process(COMMAND gzip -9n "${page}" COMMAND_ERROR_IS_FATAL ANY)
endforeach()
set(licences ${files})
list(FILTER licences INCLUDE REGEX "/share/doc/tgi/copyright$")
foreach(licence ${licences})
  get_filename_component(folder "${licence}" DIRECTORY)
  file(WRITE "${folder}/changelog"
    "tgi (${CPACK_PACKAGE_VERSION}) stable; urgency=medium\n\n  * See the history of the sources.\n\n"
    " -- ${CPACK_PACKAGE_CONTACT}  Thu, 01 Jan 2026 00:00:00 +0000\n")
  execute_process(COMMAND gzip -9n "${folder}/changelog" COMMAND_ERROR_IS_FATAL ANY)
endforeach()
