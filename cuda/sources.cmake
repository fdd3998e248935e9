# What the plugin consists of; tests build the same files for an emulated GPU.
#
# The GPUs that kernels are compiled for when nobody says: Ampere, Ada and Hopper. Each takes nvcc a minute. The list that is
# built goes into architectures.cc, which refuses every other GPU by name and says how to build for it.
set(tgi_cuda_default_architectures 80-real 89-real 90a-real)
set(tgi_cuda_host_sources
  adapters.cc architectures.cc attention_plan.cc cublas.cc cuda_device.cc cuda_matrix.cc cuda_ops.cc cuda_step.cc device_memory.cc
  device_state.cc expert_ops.cc expert_tables.cc kernels/attention.cc kv_cache.cc launch.cc link_watch.cc matmul_measure.cc matmul_tuner.cc nccl_communicator.cc
  packed_matrix.cc pinned_staging.cc plugin.cc rounded_row.cc state_layers.cc step_buffer.cc step_clock.cc step_graphs.cc
  stream_ops.cc)
set(tgi_cuda_kernels
  kernels/attention_decode.cu kernels/attention_merge.cu kernels/attention_prefill.cu kernels/attention_wide.cu kernels/experts_combine.cu kernels/experts_matmul.cu
  kernels/experts_route.cu kernels/head_matmul.cu kernels/latent_attention.cu kernels/latent_store.cu
  kernels/low_rank.cu kernels/matmul_stream.cu kernels/packed_f8.cu kernels/packed_int4.cu kernels/packed_int8.cu kernels/packed_matmul.cu
  kernels/packed_table4.cu kernels/packed_fp4.cu kernels/random_weights.cu
  kernels/report_rows.cu kernels/rows.cu kernels/sample.cu kernels/sample_bins.cu kernels/sample_filter.cu kernels/sample_scan.cu
  kernels/sample_verify.cu
  kernels/slot_start.cu kernels/state_conv.cu kernels/state_delta.cu kernels/state_gate.cu kernels/state_scan.cu kernels/state_unit.cu
  kernels/step_begin.cu kernels/store_kv.cu kernels/streams.cu)
# Where NVIDIA's libraries come from; the emulation has stand-ins for them.
set(tgi_cuda_library_sources cublas_library.cc nccl_library.cc)
