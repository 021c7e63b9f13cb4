import type { FunctionTable } from "./table.ts";

/** Functions over rows in order. */
export const WINDOWS: FunctionTable = {};
