// CpuDevice: the ops of engine/device/stream_ops.h, row by row.
#include "engine/cpu/cpu_device.h"
#include "engine/cpu/cpu_device_internal.h"
#include "engine/cpu/cpu_device_rows.h"

namespace tgi {
namespace {

RoutedRow routed_row(const StreamRouting& routing, int64_t row) {
  return {.count = routing.count,
          .scale = routing.scale,
          .routed = row_of(routing.routed, row),
          .matrix = routing.matrix->as<const float>()};
}

ConnectedRow connected_row(const StreamConnection& connection, int64_t row) {
  return {.count = connection.count,
          .norm_eps = connection.norm_eps,
          .eps = connection.eps,
          .made = row_of(connection.made, row),
          .base = connection.base->as<const float>(),
          .scales = connection.scales->as<const float>(),
          .streams = mutable_row_of(connection.streams, row),
          .cols = connection.streams.cols / connection.count};
}

}  // namespace

void CpuDevice::predict_streams(const PredictStreamsArgs& args) {
  const int32_t count = args.routing.count;
  for_rows(args.streams.rows, args.streams.cols * count, [&](int64_t row) {
    kernels_.streams.predict({.routing = routed_row(args.routing, row),
                              .streams = mutable_row_of(args.streams, row),
                              .cols = args.streams.cols / count});
  });
}

void CpuDevice::correct_streams(const CorrectStreamsArgs& args) {
  for_rows(args.streams.rows, args.streams.cols, [&](int64_t row) {
    kernels_.streams.correct({.routing = routed_row(args.routing, row),
                              .active = args.active,
                              .x = row_of(args.x, row),
                              .scales = data_or_null(args.scales),
                              .streams = mutable_row_of(args.streams, row),
                              .out = mutable_row_of(args.out, row),
                              .cols = args.x.cols});
  });
}

void CpuDevice::collapse_streams(const CollapseStreamsArgs& args) {
  for_rows(args.out.rows, args.connection.streams.cols * 2, [&](int64_t row) {
    ConnectedRow connected = connected_row(args.connection, row);
    connected.out = mutable_row_of(args.out, row);
    kernels_.streams.collapse(connected);
  });
}

void CpuDevice::expand_streams(const ExpandStreamsArgs& args) {
  for_rows(args.x.rows, args.connection.streams.cols * 4, [&](int64_t row) {
    ConnectedRow connected = connected_row(args.connection, row);
    connected.magnitude = args.magnitude;
    connected.branch_eps = args.branch_eps;
    connected.mixing_turns = args.mixing_turns;
    connected.x = row_of(args.x, row);
    kernels_.streams.expand(connected);
  });
}

void CpuDevice::match_rms(const MatchRmsArgs& args) {
  for_rows(args.x.rows, args.x.cols * 3, [&](int64_t row) {
    kernels_.streams.match_rms(row_of(args.like, row), mutable_row_of(args.x, row), args.x.cols,
                               args.least_square);
  });
}

void CpuDevice::statistical_top_k(const StatisticalTopKArgs& args) {
  for_rows(args.x.rows, args.x.cols * 3, [&](int64_t row) {
    kernels_.streams.statistical_top_k(mutable_row_of(args.x, row), args.x.cols, args.deviations);
  });
}

}  // namespace tgi
