import { isDeepStrictEqual } from "node:util";
import { z } from "zod";

type Json = Record<string, unknown>;

const COMPONENTS = "#/components/schemas/";

/** The schemas of an OpenAPI document: those that have a name are written once, and referred to. */
export class OpenApiSchemas {
  readonly #named = new Map<string, Json>();
  /** Names that were given here, for schemas that several routes share. */
  readonly #given = new Map<z.ZodType, string>();

  /** By name. */
  get all(): Json {
    return Object.fromEntries([...this.#named].toSorted(([a], [b]) => (a < b ? -1 : 1)));
  }

  /**
   * The schema as JSON Schema, in a document in which it is part of something else.
   *
   * @param name what it is called where it is an object, or one of several, and has no name of its own
   */
  of(schema: z.ZodType, name?: string): Json {
    const given = this.#given.get(schema);
    if (given !== undefined) return refTo(given);
    const { $schema: _dialect, $defs: parts = {}, ...whole } = z.toJSONSchema(schema, OPTIONS) as Json;
    // Those that refer to themselves are numbered anew in each document of their own.
    const renamed = (part: string) => (part.startsWith("__") ? `${name ?? "Schema"}${part.replaceAll("_", "")}` : part);
    for (const [part, content] of Object.entries(parts as Json)) {
      this.#add(renamed(part), withRefs(content, renamed) as Json);
    }
    const own = withRefs(whole, renamed) as Json;
    if (name === undefined || !deservesName(own)) return own;
    this.#add(name, own);
    this.#given.set(schema, name);
    return refTo(name);
  }

  #add(name: string, content: Json): void {
    const known = this.#named.get(name);
    if (known !== undefined && !isDeepStrictEqual(known, content)) throw new Error(`two schemas are called ${name}`);
    this.#named.set(name, content);
  }
}

const OPTIONS = { io: "input", unrepresentable: "any" } as const;

function refTo(name: string): Json {
  return { $ref: `${COMPONENTS}${name}` };
}

function deservesName(schema: Json): boolean {
  return "properties" in schema || "anyOf" in schema || "oneOf" in schema;
}

function withRefs(value: unknown, renamed: (part: string) => string): unknown {
  if (Array.isArray(value)) return value.map((item) => withRefs(item, renamed));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => {
      const part = key === "$ref" && typeof inner === "string" ? /^#\/\$defs\/(.+)$/.exec(inner)?.[1] : undefined;
      return [key, part === undefined ? withRefs(inner, renamed) : `${COMPONENTS}${renamed(part)}`];
    }),
  );
}
