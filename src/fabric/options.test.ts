import { integer } from "../config/load-samples.test-kit.ts";
import { checkDefaults, checkSamples } from "../config/option-samples.test-kit.ts";
import { FABRIC_OPTIONS } from "./options.ts";

checkSamples(FABRIC_OPTIONS, {
  dataSourceWorkers: integer(1, 8, 1, 256),
  fabricWorkers: integer(1, 8, 1, 256),
  fabricLeaseSecs: integer(10, 60, 10, 3_600),
  fabricSweepSecs: integer(1, 60, 1, 3_600),
  fabricOfflineSecs: integer(1, 60, 1, 86_400),
  fabricRetentionSecs: integer(3_600, 86_400, 3_600, 315_360_000),
  workerToken: {
    one: ["abc.DEF-1", "abc.DEF-1"],
    two: ["t", "t"],
    bad: ["hunter2 hunter2", "hunter2é"],
    badToml: ["7"],
  },
  workerInsecure: { one: ["1", true, "true"], two: ["no", false], bad: ["2"], badToml: ["1"] },
});

checkDefaults(FABRIC_OPTIONS, {
  dataSourceWorkers: 4,
  fabricWorkers: 4,
  fabricLeaseSecs: 300,
  fabricSweepSecs: 30,
  fabricOfflineSecs: 90,
  fabricRetentionSecs: 604_800,
  workerToken: undefined,
  workerInsecure: false,
});
