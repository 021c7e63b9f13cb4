import type { Benchmark } from "./benchmark.ts";

/** Benchmarks by their names, each loaded when it is asked for: some bring libraries that others have no need of. */
export type Registry = Readonly<Record<string, () => Promise<{ benchmark: Benchmark }>>>;

/** Those of that name, or of that group; all for `undefined`. Throws a sentence where there are none. */
export async function benchmarksNamed(name: string | undefined, registry: Registry): Promise<Benchmark[]> {
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
