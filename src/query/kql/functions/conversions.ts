import { str } from "../values/coerce.ts";
import { arg, fn, type FunctionTable } from "./table.ts";

/** Conversions between types. */
export const CONVERSIONS: FunctionTable = {
  tostring: fn((args) => str(arg(args, 0))),
};
