import type { FunctionTable } from "./table.ts";

/** Functions over arrays, bags and other dynamic values. */
export const DYNAMICS: FunctionTable = {};
