import type { Benchmark } from "./benchmark.ts";

/** Benchmarks by their names, each loaded when it is asked for: some bring libraries that others have no need of. */
export type Registry = Readonly<Record<string, () => Promise<{ benchmark: Benchmark }>>>;

/** Every benchmark. */
export const BENCHMARKS: Registry = {
  "agent/ask": () => import("../agent/ask.ts"),
  "agent/crowd": () => import("../agent/crowd.ts"),
  "compaction/merge": () => import("../compaction/merge.ts"),
  "fabric/lists": () => import("../fabric/lists.ts"),
  "kernel/encodings": () => import("../kernel/encodings.ts"),
  "kernel/filters": () => import("../kernel/filters.ts"),
  "kernel/first-body": () => import("../kernel/first-body.ts"),
  "kernel/otlp": () => import("../kernel/otlp.ts"),
  "kernel/scanner": () => import("../kernel/scanner.ts"),
  "load/bodies": () => import("../load/bodies.ts"),
  "load/filedrop": () => import("../load/filedrop.ts"),
  "load/profile": () => import("../load/profile.ts"),
  "load/second-opinion": () => import("../load/second-opinion.ts"),
  "memory/build": () => import("../memory/build.ts"),
  "memory/recall": () => import("../memory/recall.ts"),
  "peers/bulk": () => import("../peers/bulk.ts"),
  "peers/small": () => import("../peers/small.ts"),
  "query/fixed": () => import("../query/fixed.ts"),
  "query/flight": () => import("../query/flight.ts"),
  "query/tail": () => import("../query/tail.ts"),
  "start/serve": () => import("../start/serve.ts"),
};

/** Those of that name, or of that group; all for `undefined`. Throws a sentence where there are none. */
export async function benchmarksNamed(name: string | undefined, registry: Registry = BENCHMARKS): Promise<Benchmark[]> {
  const names = Object.keys(registry).filter((one) => name === undefined || one === name || one.startsWith(`${name}/`));
  if (names.length === 0)
    throw new Error(`there is no benchmark ${name}; there are ${Object.keys(registry).join(", ")}`);
  return await Promise.all(
    names.map(async (one) => {
      const { benchmark } = (await registry[one]?.()) ?? {};
      if (benchmark?.name !== one) throw new Error(`the file of ${one} calls itself ${benchmark?.name}`);
      return benchmark;
    }),
  );
}
