import { bytes, integer, path } from "../config/load-samples.test-kit.ts";
import { checkDefaults, checkSamples } from "../config/option-samples.test-kit.ts";
import { QUERY_OPTIONS } from "./options.ts";

checkSamples(QUERY_OPTIONS, {
  queryMemoryBytes: bytes(2 ** 20, ["64MiB", 2 ** 26], 2 ** 20, 2 ** 40),
  queryWallMs: integer(10, 1_000, 10, 86_400_000),
  queryObjectStoreBytes: bytes(0, ["64MiB", 2 ** 26], 0, 2 ** 50),
  queryCacheBytes: bytes(0, ["1 GiB", 2 ** 30], 0, 2 ** 50),
  queryCacheDir: path("extents"),
  queryMaxConcurrent: integer(0, 8, 0, 10_000),
  queryMaxConcurrentPerTenant: integer(3, 0, 0, 10_000),
  queryRetryAfterSecs: integer(1, 5, 1, 3_600),
  querySlowMs: integer(0, 250, 0, 86_400_000),
  queryConfinement: { one: ["off", "off"], two: ["Required", "required"], bad: ["landlock"], badToml: ["true"] },
  queryWorkers: integer(1, 8, 1, 64),
  kqlWarm: { one: ["true", true, "true"], two: ["off", false], bad: ["maybe", "2"], badToml: ["1", "[]"] },
  schemaCacheTtlSecs: integer(0, 60, 0, 86_400),
});

checkDefaults(QUERY_OPTIONS, {
  queryMemoryBytes: 4_294_967_296,
  queryWallMs: 300_000,
  queryObjectStoreBytes: 10_737_418_240,
  queryCacheBytes: 17_179_869_184,
  queryCacheDir: "/home/u/.engine/cache/extents",
  queryMaxConcurrent: 0,
  queryMaxConcurrentPerTenant: 0,
  queryRetryAfterSecs: 1,
  querySlowMs: 1_000,
  queryConfinement: "auto",
  queryWorkers: 2,
  kqlWarm: false,
  schemaCacheTtlSecs: 5,
});
