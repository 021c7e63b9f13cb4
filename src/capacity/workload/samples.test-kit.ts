/** Fifty megabytes a second, kept for ninety days, asked twenty times a second: the form of a workload. */
export const WORKLOAD = `name = "fifty"

[deployment]
mode = "staged"
zones = 3
survive = "zone"

[[ingest]]
name = "logs"
tables = 20
shape = "logs"
rows = "147_000/s"
bytes_per_row = "340 B"
rows_per_request = 3000
clients = 100
peak_factor = 2
peak_length = "30 min"
retention = "90 d"
p99 = "2 s"

[[queries]]
name = "dashboards"
class = "window"
reads = "logs"
rate = "20/s"
range = "15 min"
concurrency = 40
cached = 0.9
p99 = "5 s"
`;
