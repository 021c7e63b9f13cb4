/** The program with one feature more. */
import "../../src/core/reports.ts";
import "../../src/core/warnings.ts";
import { runCommandLine } from "../../roles/command-line.ts";
import { FEATURES } from "../../roles/features.ts";
import { TOY } from "./toy/toy.ts";

await runCommandLine([...FEATURES, TOY]);
