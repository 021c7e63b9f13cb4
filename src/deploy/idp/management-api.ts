import { decodeJwt } from "jose";
import { z } from "zod";
import { CliError, EXIT } from "../../client/failure.ts";
import { visible } from "../../client/text.ts";
import type { Clock } from "../../core/clock.ts";
import { exchange, type Answer } from "./exchange.ts";
import { jsonIn } from "../../core/json-text.ts";

/**
 * The management API of an identity provider: what `engine deploy init` uses of Supabase's. What it answers is checked
 * before it becomes a part of an address, of a setting, or of what a terminal shows.
 */

const MAX_NAME_CHARS = 200;
const MAX_LIST_CHARS = 100_000;
const MAX_SHOWN_CHARS = 200;

/** A part of paths and of host names. */
const projectRef = z
  .string()
  .regex(/^[a-z0-9]{1,40}$/)
  .brand("ProjectRef");
export type ProjectRef = z.output<typeof projectRef>;

const shownName = z.string().max(MAX_NAME_CHARS).transform(visible);

const organization = z.object({ id: z.string().max(MAX_NAME_CHARS), name: shownName });
export type Organization = z.output<typeof organization>;

const project = z
  .object({
    // Its older name is the id.
    id: projectRef,
    ref: projectRef.optional(),
    name: shownName,
    region: z.string().max(MAX_NAME_CHARS).transform(visible),
    status: z.string().regex(/^[A-Z_]{1,40}$/),
    database: z.object({ host: z.string().max(255) }).optional(),
  })
  .transform(({ id, ref = id, ...rest }) => ({ ref, ...rest }));
export type Project = z.output<typeof project>;

const madeProject = z.object({ id: projectRef, ref: projectRef.optional() }).transform(({ id, ref = id }) => ref);
const apiKeys = z.array(z.object({ name: z.string(), type: z.string().nullish(), api_key: z.string().nullish() }));

const authConfig = z.object({
  site_url: z.string().max(MAX_LIST_CHARS).nullish(),
  uri_allow_list: z.string().max(MAX_LIST_CHARS).nullish(),
});
export type AuthConfig = z.output<typeof authConfig>;

export type NewProject = { name: string; organizationId: string; region: string; databasePassword: string };

export type ManagementApiOptions = { apiBase: string; accessToken: string; clock: Clock };

export class ManagementApi {
  readonly #options: ManagementApiOptions;

  constructor(options: ManagementApiOptions) {
    this.#options = options;
  }

  async organizations(): Promise<Organization[]> {
    return await this.#ask("GET", "organizations", z.array(organization));
  }

  async projects(): Promise<Project[]> {
    return await this.#ask("GET", "projects", z.array(project));
  }

  async createProject({ name, organizationId, region, databasePassword }: NewProject): Promise<ProjectRef> {
    const body = { name, organization_id: organizationId, region, db_pass: databasePassword };
    return await this.#ask("POST", "projects", madeProject, body);
  }

  /** The key that browsers get. @throws CliError where there is none that may be public */
  async publicKey(ref: ProjectRef): Promise<string> {
    const keys = await this.#ask("GET", `projects/${ref}/api-keys`, apiKeys);
    const candidates = [keys.find(({ name }) => name === "anon"), keys.find(({ type }) => type === "publishable")];
    const key = candidates.map((one) => one?.api_key ?? "").find(isPublicKey);
    if (key !== undefined) return key;
    throw new CliError(`the project ${ref} has no key for browsers (anon, or publishable): make one at the provider`);
  }

  async authConfig(ref: ProjectRef): Promise<AuthConfig> {
    return await this.#ask("GET", `projects/${ref}/config/auth`, authConfig);
  }

  async setAuthConfig(ref: ProjectRef, config: { site_url: string; uri_allow_list: string }): Promise<void> {
    await this.#ask("PATCH", `projects/${ref}/config/auth`, z.unknown(), config);
  }

  async #ask<T>(method: "GET" | "POST" | "PATCH", path: string, schema: z.ZodType<T>, body?: object): Promise<T> {
    const { apiBase, accessToken, clock } = this.#options;
    const answer = await exchange(clock, `${apiBase}/v1/${path}`, {
      method,
      headers: {
        Accept: "application/json",
        Authorization: `Bearer ${accessToken}`,
        ...(body !== undefined && { "Content-Type": "application/json" }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const asked = `${method} /v1/${path}`;
    if (answer.status < 200 || answer.status > 299) throw this.#failureOf(asked, answer);
    const parsed = schema.safeParse(jsonIn(answer.text));
    if (parsed.success) return parsed.data;
    const [issue] = parsed.error.issues;
    const where = visible(issue?.path.map(String).join(".") ?? "").slice(0, MAX_SHOWN_CHARS) || "the whole";
    throw new CliError(`${asked}: the provider sent an invalid answer (${where}); check ENGINE_IDP_API_BASE`);
  }

  #failureOf(asked: string, { status, retryAfter, text }: Answer): CliError {
    const { data } = z.object({ message: z.string() }).safeParse(jsonIn(text));
    const said = data === undefined || data.message.includes(this.#options.accessToken) ? "" : data.message;
    const detail = said === "" ? {} : { detail: visible(said).slice(0, MAX_SHOWN_CHARS) };
    const is = `${asked}: the provider answered ${status}`;
    if (status === 401) {
      return new CliError(`${is}, the sign-in is not valid; run \`engine deploy init\` again`, EXIT.auth, detail);
    }
    if (status === 403) {
      const needs = "projects, secrets and auth (read and write), organizations (read)";
      return new CliError(`${is}, the app or its user may not do this; the app needs ${needs}`, EXIT.auth, detail);
    }
    if (status === 429) {
      const wait = /^\d{1,6}$/.test(retryAfter ?? "") ? `${retryAfter} s` : "a minute";
      return new CliError(
        `${is}, too many requests; wait ${wait} and run \`engine deploy init\` again`,
        EXIT.failed,
        detail,
      );
    }
    const hint = status >= 500 ? "; run `engine deploy init` again later" : "";
    return new CliError(`${is}${hint}`, EXIT.failed, detail);
  }
}

const DOMAIN = /^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]{2,63}$/;

/**
 * The address of a project, whose tokens the deployment will take. The API names only the host of its database,
 * `db.<ref>.<domain>`, beside which the address is `<ref>.<domain>`. @throws CliError where it names no such host
 */
export function projectUrl({ ref, database }: Project): string {
  const host = database?.host ?? "";
  const prefix = `db.${ref}.`;
  const domain = host.slice(prefix.length);
  if (host.startsWith(prefix) && DOMAIN.test(domain)) return `https://${ref}.${domain}`;
  throw new CliError(
    `the provider does not say where the project ${ref} is: set ENGINE_IDP_URL and ENGINE_IDP_ANON_KEY yourself`,
  );
}

/** By its own words: another key of the project would give everything to whoever sees the login page. */
function isPublicKey(key: string): boolean {
  if (/^sb_publishable_[\w-]{1,200}$/.test(key)) return true;
  if (!/^[\w-]{1,1000}\.[\w-]{1,2000}\.[\w-]{1,1000}$/.test(key)) return false;
  try {
    return decodeJwt(key)["role"] === "anon";
  } catch {
    return false;
  }
}
