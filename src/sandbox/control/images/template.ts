import { parse, TomlError } from "smol-toml";
import { z } from "zod";
import { EngineError } from "../../../core/errors.ts";
import { mayHavePrototypeKey, prototypeKeyIn } from "../../../core/prototype-keys.ts";
import { ENV_NAME } from "../../contract/text-fields.ts";
import {
  PACKAGE_MANAGERS,
  type PackageManager,
  type Template,
  type TemplateFile,
} from "../../contract/images/template.ts";
import { DEFAULT_TEMPLATES } from "./default-templates.ts";

/** Most characters of a template. */
export const TEMPLATE_CHARS = 64 * 1024;
const TEXT_CHARS = 32 * 1024;
const MAX = { variables: 64, packages: 200, files: 100, commands: 100, environment: 100 } as const;
/** As what is built of it goes into a job, beside what is said of its base. */
const MAX_BYTES = 160 * 1024;
const NAME = /^[A-Za-z_][A-Za-z0-9_]{0,63}$/;
const PLACEHOLDER = /\{\{([^{}\n]*)\}\}/g;

/** What package managers take as a package. Never an option, a path or an address. */
const PACKAGES: Readonly<Record<PackageManager, { form: RegExp; says: string }>> = {
  apt: { form: /^[a-z0-9][a-z0-9.+-]*(?::[a-z0-9-]+)?(?:=[A-Za-z0-9.+:~-]+)?$/, says: "NAME or NAME=VERSION" },
  npm: {
    form: /^(?:@[a-z0-9][a-z0-9._-]*\/)?[a-z0-9][a-z0-9._-]*(?:@[A-Za-z0-9^~][A-Za-z0-9.+-]*)?$/,
    says: "NAME or NAME@VERSION",
  },
  pip: {
    form: /^[A-Za-z0-9][A-Za-z0-9._-]*(?:\[[A-Za-z0-9._,-]+\])?(?:(?:[=~!<>]=|[<>])[A-Za-z0-9.*+!]+)?$/,
    says: "NAME or NAME==VERSION",
  },
  cargo: { form: /^[A-Za-z0-9][A-Za-z0-9_-]*(?:@[A-Za-z0-9.+-]+)?$/, says: "NAME or NAME@VERSION" },
};

const text = z
  .string()
  .max(TEXT_CHARS)
  .refine((value) => value.isWellFormed() && !value.includes("\0"), "accepted is text without NUL characters");
const user = z.enum(["root", "agent"]).default("root");

const file = z
  .strictObject({
    path: text
      .max(1_024)
      .refine(
        isFilePath,
        "accepted are absolute paths without `.` and `..`, outside of /proc, /sys, /dev, /run and /tmp",
      ),
    content: text.optional(),
    content_base64: z.base64().max(MAX_BYTES).optional(),
    mode: z
      .string()
      .regex(/^0?[0-7]{3}$/, "accepted are modes like 0644")
      .default("0644"),
    user,
  })
  .refine(
    (one) => (one.content === undefined) !== (one.content_base64 === undefined),
    "accepted is one of content and content_base64",
  );

const packages = (manager: PackageManager) => {
  const { form, says } = PACKAGES[manager];
  return z
    .array(text.regex(form, `accepted is ${says}`))
    .max(MAX.packages)
    .default([]);
};

const schema = z.strictObject({
  base: text.min(1).max(255),
  packages: z
    .strictObject({ apt: packages("apt"), npm: packages("npm"), pip: packages("pip"), cargo: packages("cargo") })
    .prefault({}),
  files: z.array(file).max(MAX.files).default([]),
  commands: z
    .array(z.strictObject({ run: text.min(1), user }))
    .max(MAX.commands)
    .default([]),
  environment: z
    .record(z.string().regex(ENV_NAME, "accepted are names of environment variables"), text)
    .default({})
    .refine((all) => Object.keys(all).length <= MAX.environment, `accepted are at most ${MAX.environment} variables`),
});

const variables = z
  .record(z.string().regex(NAME, "accepted are names of letters, digits and `_`"), text)
  .refine((all) => Object.keys(all).length <= MAX.variables, `accepted are at most ${MAX.variables} variables`);

/**
 * Reads a template: what an image is built from, as TOML.
 *
 * ```toml
 * base = "debian"                 # an image that nodes have, or the id of a built one
 *
 * [variables]                     # with their defaults; a build request may have others
 * node = "22"
 *
 * [packages]                      # in this order
 * apt = ["ripgrep"]
 * npm = ["node@{{node}}"]
 * pip = ["requests==2.32.3"]
 * cargo = ["just@1.36.0"]
 *
 * [[files]]
 * path = "/etc/motd"
 * content = "hello\n"             # or content_base64
 * mode = "0644"
 * user = "root"                   # or "agent"
 *
 * [[commands]]                    # run by sh -c, one after the other, after all else
 * run = "ln -s /usr/local/bin/node /usr/local/bin/nodejs"
 * user = "root"                   # or "agent"
 *
 * [environment]                   # of every command, in the build and in sandboxes
 * EDITOR = "vi"
 * ```
 *
 * `{{name}}` stands for a variable in every text but names. What a variable holds is not looked into again.
 *
 * Variables of a build request come before its own. Without a source it is the default one of the
 * agent provider. Throws `config_validation_error`; the message says where.
 */
export function readTemplate(
  source: string | undefined,
  { provider, given }: { provider: string; given: Readonly<Record<string, string>> },
): Template {
  const table = tableIn(source ?? DEFAULT_TEMPLATES.get(provider) ?? "");
  const declared = checked(variables, table["variables"] ?? {}, ["template_source", "variables"]);
  const values = valuesOf(declared, given);
  const { variables: _declared, ...rest } = table;
  const { commands, files, ...template } = checked(schema, substituted(rest, values, []), ["template_source"]);
  const built = { ...template, commands, files: files.map(toFile) };
  if (Buffer.byteLength(JSON.stringify(built)) <= MAX_BYTES) return built;
  throw invalid("template_source", `the template is larger than ${MAX_BYTES} bytes in JSON`);
}

function tableIn(source: string): Record<string, unknown> {
  if (source.length > TEMPLATE_CHARS) throw invalid("template_source", `accepted are ${TEMPLATE_CHARS} characters`);
  const table = parsed(source);
  const place = mayHavePrototypeKey(source) ? prototypeKeyIn(table) : undefined;
  if (place !== undefined) throw invalid("template_source", `${place}: the key is not accepted`);
  return table;
}

function parsed(source: string): Record<string, unknown> {
  try {
    return parse(source);
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    const [why = "no TOML"] = error.message.replace(/^Invalid TOML document: /, "").split("\n");
    throw invalid("template_source", `line ${error.line}, column ${error.column}: ${why}`);
  }
}

function valuesOf(
  declared: Readonly<Record<string, string>>,
  given: Readonly<Record<string, string>>,
): ReadonlyMap<string, string> {
  for (const [name, value] of Object.entries(given)) {
    if (!Object.hasOwn(declared, name)) {
      const known = Object.keys(declared).toSorted().join(", ");
      throw invalid(`variables.${name}`, `the template has no such variable; it has ${known === "" ? "none" : known}`);
    }
    checked(text, value, ["variables", name]);
  }
  return new Map(Object.entries({ ...declared, ...given }));
}

/** Every text of a value, with variables in their places. */
function substituted(value: unknown, values: ReadonlyMap<string, string>, path: readonly string[]): unknown {
  if (typeof value === "string") {
    return value.replaceAll(PLACEHOLDER, (_all, name: string) => {
      const found = values.get(name);
      if (found !== undefined) return found;
      throw invalid(placeOf(["template_source", ...path]), `there is no variable ${JSON.stringify(name.slice(0, 64))}`);
    });
  }
  if (Array.isArray(value)) return value.map((item: unknown, i) => substituted(item, values, [...path, String(i)]));
  if (typeof value !== "object" || value === null || value instanceof Date) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => [name, substituted(item, values, [...path, name])]),
  );
}

function checked<T extends z.ZodType>(type: T, value: unknown, path: readonly string[]): z.output<T> {
  const { success, data, error } = type.safeParse(value);
  if (success) return data;
  const [issue] = error.issues;
  throw invalid(placeOf([...path, ...(issue?.path ?? []).map(String)]), issue?.message ?? "is not accepted");
}

function placeOf(path: readonly string[]): string {
  return path.reduce((place, step) => (/^\d+$/.test(step) ? `${place}[${step}]` : `${place}.${step}`));
}

function toFile({ path, content, content_base64: bytes, mode, user: owner }: z.output<typeof file>): TemplateFile {
  const contentBase64 = bytes ?? Buffer.from(content ?? "").toString("base64");
  return { path, contentBase64, mode: Number.parseInt(mode, 8), user: owner };
}

function isFilePath(path: string): boolean {
  const [root, ...names] = path.split("/");
  const isPlain = names.every((name) => name !== "" && name !== "." && name !== "..");
  return root === "" && isPlain && !/\p{Cc}/u.test(path) && !/^\/(?:proc|sys|dev|run|tmp)(?:\/|$)/.test(path);
}

function invalid(field: string, why: string): EngineError {
  return new EngineError("config_validation_error", `${field}: ${why}`);
}
