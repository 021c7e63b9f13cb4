import { bytes, integer } from "../config/load-samples.test-kit.ts";
import { checkDefaults, checkSamples } from "../config/option-samples.test-kit.ts";
import { INGEST_OPTIONS } from "./options.ts";

checkSamples(INGEST_OPTIONS, {
  ingestMode: { one: ["staged", "staged"], two: ["sync", "sync"], bad: ["async"], badToml: ["true"] },
  stagingDisabled: {
    one: ["1", true, "true"],
    two: ["no", false],
    bad: ["2", "enabled", "truee"],
    badToml: ["1", "[true]"],
  },
  flushMaxRows: integer(1, 5, 1, 10_000_000),
  flushMaxBytes: bytes(4096, ["2 MiB", 2_097_152], 1_024, 2 ** 30),
  flushMaxAgeMs: integer(0, 10, 0, 60_000),
  commitWindowMs: integer(0, 10, 0, 10_000),
  commitMaxExtents: integer(1, 10, 1, 10_000),
  ingestInferTypes: {
    one: ["true", true, "true"],
    two: ["off", false],
    bad: ["2", "types"],
    badToml: ["1", "[true]"],
  },
  ingestMaxInflightBytes: bytes(100_000_000, ["1gib", 2 ** 30], 2 ** 26, 2 ** 40),
  ingestRateRps: integer(0, 100, 0, 1_000_000),
  ingestRateBurst: integer(1, 50, 1, 2_000_000),
  sealThreads: integer(1, 64, 1, 64),
  ingestVerbose: { one: ["yes", true, "true"], two: ["0", false, "false"], bad: ["2", "loud"], badToml: ["1"] },
});

checkDefaults(INGEST_OPTIONS, {
  ingestMode: "sync",
  stagingDisabled: false,
  flushMaxRows: 8_000,
  flushMaxBytes: 16_777_216,
  flushMaxAgeMs: 50,
  commitWindowMs: 5,
  commitMaxExtents: 128,
  ingestInferTypes: false,
  ingestMaxInflightBytes: 134_217_728,
  ingestRateRps: 0,
  ingestRateBurst: 1,
  sealThreads: 4,
  ingestVerbose: false,
});
