import type { FunctionTable } from "./table.ts";

/** Whole families that are not supported. */
export const REFUSED: FunctionTable = {};
