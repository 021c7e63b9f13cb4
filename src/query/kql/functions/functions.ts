import { CONDITIONS } from "./conditions.ts";
import { CONVERSIONS } from "./conversions.ts";
import { DATES } from "./dates.ts";
import { DYNAMICS } from "./dynamics.ts";
import { NUMBERS } from "./numbers.ts";
import { REFUSED } from "./refused.ts";
import { STRINGS } from "./strings.ts";
import type { FunctionTable } from "./table.ts";
import { WINDOWS } from "./windows.ts";

/** All functions of the language, by name. */
export const SCALAR_FUNCTIONS: FunctionTable = {
  ...CONDITIONS,
  ...CONVERSIONS,
  ...DATES,
  ...DYNAMICS,
  ...NUMBERS,
  ...STRINGS,
  ...WINDOWS,
  ...REFUSED,
};
