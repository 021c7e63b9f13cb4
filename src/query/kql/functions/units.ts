import type { FunctionTable } from "./table.ts";

export const UNITS: FunctionTable = {};
