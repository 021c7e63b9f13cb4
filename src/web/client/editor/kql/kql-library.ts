import type { Library } from "../../../../query/kql/bind/library.ts";

type Equatable = { equals: (this: object, other: unknown) => boolean };
type Globals = {
  Kusto?: { Language: Library };
  Bridge?: { toArray<T>(list: unknown): T[] };
  System?: Record<"Int64" | "UInt64", { prototype: Equatable }>;
};

/** The service is C# that was compiled to JavaScript: what has loaded it finds it among the globals. */
const globals = globalThis as unknown as Globals;

/** The language service, which whoever calls has loaded. */
export function kqlLibrary(): Library {
  if (globals.Kusto === undefined) throw new Error("the KQL language service is not loaded");
  return globals.Kusto.Language;
}

/** Any list of the service's as an array. */
export function listed<T>(list: { Count: number } | null | undefined): T[] {
  return list === null || list === undefined ? [] : (globals.Bridge?.toArray<T>(list) ?? []);
}

/** Its 64-bit integers throw where they are compared with null or a text, as the binder does with arguments of calls. */
export function repairEquality(): void {
  for (const kind of ["Int64", "UInt64"] as const) {
    const prototype = globals.System?.[kind].prototype;
    if (prototype === undefined) continue;
    const compare = prototype.equals;
    prototype.equals = function equals(other) {
      return other !== null && other !== undefined && typeof other !== "string" && compare.call(this, other);
    };
  }
}
