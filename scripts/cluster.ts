import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { describeCluster, startLocalCluster } from "../test/cluster/local-cluster.ts";

/**
 * A cluster on this machine, to be tried: PostgreSQL, an S3 server, two edges, two query and two ingest servers, a
 * committer, compaction and a worker.
 *
 *     npm run cluster                 in a new temporary folder
 *     npm run cluster -- FOLDER       in a folder that is taken up again the next time
 *
 * `ENGINE_…` variables of the shell go to every process, for example `ENGINE_INGEST_MODE=staged`. Ctrl-C ends all of it.
 */
const folder =
  process.argv[2] === undefined ? mkdtempSync(join(tmpdir(), "engine-cluster-")) : resolve(process.argv[2]);
const env = Object.fromEntries(
  Object.entries(process.env).flatMap(([name, value]) => (name.startsWith("ENGINE_") ? [[name, value ?? ""]] : [])),
);
console.log(`starting in ${folder}`);
const cluster = await startLocalCluster({ folder, env });
console.log(describeCluster(cluster));
console.log(
  `try: curl -s ${cluster.edges[0]}/v1/ingest -H 'X-Table: notes' -H 'Content-Type: application/x-ndjson' --data '{"body":"hello"}'`,
);
let stopping = false;
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.on(signal, () => {
    if (stopping) return;
    stopping = true;
    console.log("stopping");
    cluster.stop().then(
      () => process.exit(0),
      (error: unknown) => {
        console.error(error);
        process.exit(1);
      },
    );
  });
}
