import type { FunctionTable } from "./table.ts";

/** Functions over numbers. */
export const NUMBERS: FunctionTable = {};
