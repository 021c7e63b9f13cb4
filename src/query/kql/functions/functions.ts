import { ADDRESSES } from "./addresses.ts";
import { COLUMN_NAMES } from "./column-names.ts";
import { CONDITIONS } from "./conditions.ts";
import { CONVERSIONS } from "./conversions.ts";
import { DATES } from "./dates.ts";
import { DYNAMICS } from "./dynamics.ts";
import { ENCODINGS } from "./encodings.ts";
import { NUMBERS } from "./numbers.ts";
import { PARSERS } from "./parsers.ts";
import { PATTERNS } from "./patterns.ts";
import { REFUSED } from "./refused.ts";
import { SIZES } from "./sizes.ts";
import { STRINGS } from "./strings.ts";
import type { FunctionTable } from "./table.ts";
import { WINDOWS } from "./windows.ts";

/** All functions of the language, by name. */
export const SCALAR_FUNCTIONS: FunctionTable = {
  ...ADDRESSES,
  ...COLUMN_NAMES,
  ...CONDITIONS,
  ...CONVERSIONS,
  ...DATES,
  ...DYNAMICS,
  ...ENCODINGS,
  ...NUMBERS,
  ...PARSERS,
  ...PATTERNS,
  ...SIZES,
  ...STRINGS,
  ...WINDOWS,
  ...REFUSED,
};
