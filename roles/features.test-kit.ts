import { optionRowsOf } from "../src/feature/collect.ts";
import { FEATURES } from "./features.ts";

/** The options of all features, for tests that read a whole configuration. */
export const FEATURE_ROWS = await optionRowsOf(FEATURES);
