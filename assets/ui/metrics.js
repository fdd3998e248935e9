// Reads Prometheus' text format, and what two readings of a counter or a histogram say of the time between.

const kLine = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)/;
const kLabel = /([a-zA-Z_]\w*)="((?:\\.|[^"\\])*)"/g;

/** name -> [{labels, value}] */
export function parseMetrics(text) {
  const out = new Map();
  for (const line of text.split("\n")) {
    const found = line.startsWith("#") ? null : kLine.exec(line);
    if (!found) continue;
    const labels = {};
    for (const [, name, value] of (found[2] ?? "").matchAll(kLabel)) labels[name] = value;
    const value = found[3] === "+Inf" ? Infinity : Number(found[3]);
    if (!out.has(found[1])) out.set(found[1], []);
    out.get(found[1]).push({labels, value});
  }
  return out;
}

/** The sum of all lines of that name whose labels are such; undefined when there is none. */
export function valueOf(metrics, name, labels = {}) {
  const rows = (metrics.get(name) ?? []).filter(row => Object.entries(labels).every(([label, value]) => row.labels[label] === value));
  return rows.length ? rows.reduce((sum, row) => sum + row.value, 0) : undefined;
}

/** By how much a counter grew each second; undefined when it is not known, as after a restart of the server. */
export function rateOf(before, after, name, seconds) {
  const grown = valueOf(after, name) - valueOf(before, name);
  return grown >= 0 && seconds > 0 ? grown / seconds : undefined;
}

const bucketsOf = (metrics, name) => (metrics.get(`${name}_bucket`) ?? [])
  .map(row => [row.labels.le === "+Inf" ? Infinity : Number(row.labels.le), row.value]).sort((a, b) => a[0] - b[0]);

/** A quantile of what a histogram took in between, within its bucket by proportion; undefined when that is nothing. */
export function quantileOf(before, after, name, share) {
  const earlier = new Map(before ? bucketsOf(before, name) : []);
  const buckets = bucketsOf(after, name).map(([limit, count]) => [limit, count - (earlier.get(limit) ?? 0)]);
  const total = buckets.at(-1)?.[1] ?? 0;
  if (!(total > 0)) return undefined;
  const wanted = total * share;
  let [low, below] = [0, 0];
  for (const [limit, count] of buckets) {
    if (count >= wanted) return limit === Infinity ? low : low + (limit - low) * ((wanted - below) / (count - below || 1));
    [low, below] = [limit, count];
  }
  return low;
}
