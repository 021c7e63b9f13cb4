import { expect, test } from "vitest";
import { lacks } from "../../src/core/gates.test-kit.ts";
import { keepPrinted } from "../support/printed.test-kit.ts";
import { main as runCluster } from "./cluster.ts";

/** The benchmarks of whole write paths in their smallest form: that they run and that their sides agree. */
const printed = keepPrinted();

test("a mode that does not exist is refused by name", async () => {
  await expect(runCluster(["--mode", "async"])).rejects.toThrow("async is no mode");
});

test.skipIf(lacks("PostgreSQL", "S3 server", "ps"))(
  "a staged cluster is measured through its edge and past it",
  { timeout: 240_000 },
  async () => {
    const small = ["--rows", "1000", "--seconds", "1", "--rounds", "1", "--body-kib", "64"];
    await runCluster(["--mode", "staged", "--no-single", ...small]);
    const text = printed.join("\n");
    expect(text).toMatch(/^staged, edge( +[0-9.]+){11}$/m);
    expect(text).toMatch(/^staged, direct( +[0-9.]+){11}$/m);
    expect(text).toMatch(/^staged, edge: the edge takes [0-9.]+× the CPU of the ingest node/m);
  },
);
