import { z } from "zod";

/**
 * Names schemas for the OpenAPI document: what has a name is written there once, below `components`, and referred to. Who
 * generates a client gets a type of that name. A schema without one is named after its route, where it is a whole body.
 */
export function nameSchemas(named: Readonly<Record<string, z.ZodType>>): void {
  for (const [id, schema] of Object.entries(named)) schema.register(z.globalRegistry, { ...schema.meta(), id });
}
