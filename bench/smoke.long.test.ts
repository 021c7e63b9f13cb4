import { expect, test } from "vitest";
import { keepPrinted } from "./support/printed.test-kit.ts";
import { main as runFilters } from "./kernel/filters.ts";
import { main as runKernel } from "./kernel/scanner.ts";
import { main as runOtlp } from "./kernel/otlp.ts";
import { main as runLoad } from "./load/ingest.ts";

/** The benchmarks in their smallest form: that they run and that their sides agree, not how fast. */
const printed = keepPrinted();

test("the kernel's stages run on every synthetic shape, with the answers of DuckDB and JSON.parse", async () => {
  await runKernel(["logs", "wide", "nested", "numbers", "text", "--rows", "1000", "--rounds", "1"]);
  expect(printed.join("\n")).toMatch(/^text( +[0-9.]+){10}$/m);
});

test("filters of values and of grams are measured", async () => {
  await runFilters(["logs", "--rows", "10000", "--rounds", "1"]);
  expect(printed.join("\n")).toMatch(/^logs +trace_id( +[0-9.]+){5}$/m);
  expect(printed.join("\n")).toMatch(/^logs +body( +[0-9.]+){4} +–$/m);
});

test("OTLP is measured against NDJSON and protobufjs", async () => {
  await runOtlp(["--records", "500", "--rounds", "1", "--requests", "2"]);
  expect(printed.join("\n")).toMatch(/^500( +[0-9.]+){9}$/m);
});

test("ingest is measured and its answers checked", async () => {
  await runLoad(["mib", "--rows", "1000", "--rounds", "1", "--body-bytes", "65536"]);
  expect(printed.join("\n")).toMatch(/^mib( +[0-9.]+){14}$/m);
});

test("a preset that does not exist is refused by name", async () => {
  await expect(runLoad(["mibb"])).rejects.toThrow("mibb is no preset");
});
