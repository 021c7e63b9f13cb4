import { fileURLToPath } from "node:url";
import { startPartsFrom } from "../../src/core/isolate.ts";

/** Of every test file: its threads and child processes come from the bundle, which is built by then. */
startPartsFrom(fileURLToPath(new URL("../../dist", import.meta.url)));
