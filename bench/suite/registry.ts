import type { Benchmark } from "./benchmark.ts";

/** Every benchmark, loaded when it is asked for: some bring libraries that others have no need of. */
const BENCHMARKS: Readonly<Record<string, () => Promise<{ benchmark: Benchmark }>>> = {
  "agent/ask": () => import("../agent/ask.ts"),
  "agent/crowd": () => import("../agent/crowd.ts"),
  "compaction/merge": () => import("../compaction/merge.ts"),
  "fabric/lists": () => import("../fabric/lists.ts"),
  "kernel/first-body": () => import("../kernel/first-body.ts"),
  "kernel/otlp": () => import("../kernel/otlp.ts"),
  "kernel/scanner": () => import("../kernel/scanner.ts"),
  "load/bodies": () => import("../load/bodies.ts"),
  "load/filedrop": () => import("../load/filedrop.ts"),
  "load/ingest": () => import("../load/ingest.ts"),
  "load/kafka": () => import("../load/kafka.ts"),
  "load/overload": () => import("../load/overload.ts"),
  "load/profile": () => import("../load/profile.ts"),
  "load/second-opinion": () => import("../load/second-opinion.ts"),
  "load/until-parquet": () => import("../load/until-parquet.ts"),
  "memory/build": () => import("../memory/build.ts"),
  "memory/recall": () => import("../memory/recall.ts"),
  "peers/bulk": () => import("../peers/bulk.ts"),
  "peers/small": () => import("../peers/small.ts"),
  "query/fixed": () => import("../query/fixed.ts"),
  "query/fresh": () => import("../query/fresh.ts"),
  "query/half-fresh": () => import("../query/half-fresh.ts"),
  "query/kql": () => import("../query/kql.ts"),
  "query/kql-start": () => import("../query/kql-start.ts"),
  "query/ndjson": () => import("../query/ndjson.ts"),
  "query/planning": () => import("../query/planning.ts"),
  "query/suite": () => import("../query/suite.ts"),
  "query/widened": () => import("../query/widened.ts"),
};

/** Those of that name, or of that group; all for `undefined`. Throws a sentence where there are none. */
export async function benchmarksNamed(name: string | undefined): Promise<Benchmark[]> {
  const names = Object.keys(BENCHMARKS).filter(
    (one) => name === undefined || one === name || one.startsWith(`${name}/`),
  );
  if (names.length === 0)
    throw new Error(`there is no benchmark ${name}; there are ${Object.keys(BENCHMARKS).join(", ")}`);
  return await Promise.all(
    names.map(async (one) => {
      const { benchmark } = (await BENCHMARKS[one]?.()) ?? {};
      if (benchmark?.name !== one) throw new Error(`the file of ${one} calls itself ${benchmark?.name}`);
      return benchmark;
    }),
  );
}
