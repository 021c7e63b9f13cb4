import type { McpServer } from "../spec.ts";

const REFERENCE = /\$\{([A-Za-z_][A-Za-z0-9_]*)\}/g;

/** Variables that values of a server name. */
export function variablesOf(server: McpServer): string[] {
  const values = Object.values(server.type === "stdio" ? server.env : server.headers);
  return values.flatMap((value) => [...value.matchAll(REFERENCE)].map(([, variable = ""]) => variable));
}

/** A value of a server with variables in the place of their names; of one that is not known, nothing. */
export function withVariables(value: string, variables: ReadonlyMap<string, string>): string {
  return value.replaceAll(REFERENCE, (_, variable: string) => variables.get(variable) ?? "");
}
