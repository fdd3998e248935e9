# What the plugin consists of; tests build the same files for an emulated GPU.
set(tgi_cuda_host_sources
  attention_plan.cc cuda_device.cc cuda_matrix.cc cuda_ops.cc cuda_step.cc device_memory.cc device_state.cc launch.cc
  kernels/attention.cc matmul_tuner.cc plugin.cc step_buffer.cc step_graphs.cc)
set(tgi_cuda_kernels
  kernels/attention_decode.cu kernels/attention_merge.cu kernels/attention_prefill.cu kernels/matmul_stream.cu kernels/random_weights.cu
  kernels/rows.cu kernels/sample.cu kernels/sample_bins.cu kernels/sample_filter.cu kernels/sample_scan.cu
  kernels/slot_start.cu kernels/step_begin.cu kernels/store_kv.cu)
# What stands between us and NVIDIA's libraries; the emulation has its own.
set(tgi_cuda_library_sources cublas.cc cublas_library.cc nccl_communicator.cc nccl_library.cc)
