import { expect, test } from "vitest";
import { keepPrinted } from "./support/printed.test-kit.ts";
import { main as runLoad } from "./load/ingest.ts";

/** The benchmarks in their smallest form: that they run and that their sides agree, not how fast. */
const printed = keepPrinted();

test("ingest is measured and its answers checked", async () => {
  await runLoad(["mib", "--rows", "1000", "--rounds", "1", "--body-bytes", "65536"]);
  expect(printed.join("\n")).toMatch(/^mib( +[0-9.]+){14}$/m);
});

test("types that are inferred, before and on the way, give the same answers as declared ones", async () => {
  await runLoad(["inferred", "--rows", "1000", "--rounds", "1", "--body-bytes", "65536"]);
  const text = printed.join("\n");
  for (const name of ["mib", "settled", "inferred"]) expect(text).toMatch(new RegExp(`^${name}( +[0-9.]+){14}$`, "m"));
  expect(text).toMatch(/^settled: [0-9.]+× the MB\/CPU-s of mib$/m);
});

test("a preset that does not exist is refused by name", async () => {
  await expect(runLoad(["mibb"])).rejects.toThrow("mibb is no preset");
});
