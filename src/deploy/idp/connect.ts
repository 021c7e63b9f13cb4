import { valuesOf } from "../../config/option.ts";
import type { CliContext } from "../../client/context.ts";
import { CliError, EXIT } from "../../client/failure.ts";
import { askText, confirm } from "../../client/prompt.ts";
import { visible } from "../../client/text.ts";
import { sleep } from "../../core/clock.ts";
import type { IdentitySettings } from "../target.ts";
import { ManagementApi, projectUrl, type AuthConfig, type Project, type ProjectRef } from "./management-api.ts";
import { IDP_OPTIONS } from "./options.ts";
import { signIn, type ManagementApp } from "./sign-in.ts";

/** From a sign-in by browser to a project of the identity provider that knows the deployment's addresses. */

const POLL_MS = 5_000;
/** A new project takes a minute or two. */
const READY_TIMEOUT_MS = 10 * 60_000;
const READY = "ACTIVE_HEALTHY";
/** States that pass by themselves. */
const PASSING = new Set(["COMING_UP", "RESIZING", "RESTARTING", "RESTORING", "UNKNOWN", "UPGRADING"]);
const REGION = /^[a-z0-9-]{2,40}$/;
const NEW = "new";
/** What the provider gives a new project. */
const DEFAULT_SITE_URL = "http://localhost:3000";

/** The app of the configuration; undefined without one. @throws CliError for half of one */
export async function managementApp(context: CliContext): Promise<ManagementApp | undefined> {
  const { config } = await context.loadConfigQuietly({});
  const {
    idpApiBase: apiBase,
    idpOAuthClientId: clientId,
    idpOAuthClientSecret: clientSecret,
  } = valuesOf(IDP_OPTIONS, config);
  if (clientId === undefined && clientSecret === undefined) return undefined;
  if (clientId !== undefined && clientSecret !== undefined) return { apiBase, clientId, clientSecret };
  throw new CliError(
    "ENGINE_IDP_OAUTH_CLIENT_ID and ENGINE_IDP_OAUTH_CLIENT_SECRET belong together: set both, or neither",
    EXIT.usage,
  );
}

export type ConnectOptions = {
  app: ManagementApp;
  /** Of the deployment. */
  name: string;
  /** Where browsers reach it, the main address first. */
  urls: readonly [string, ...string[]];
};

/** @throws CliError; a project that was made by then stays */
export async function connectIdentity(
  context: CliContext,
  { app, name, urls }: ConnectOptions,
): Promise<IdentitySettings> {
  const { clock } = context.deps;
  const accessToken = await signIn(context, app);
  const api = new ManagementApi({ apiBase: app.apiBase, accessToken, clock });
  const { ref, isNew } = await chooseProject(context, api, name);
  const project = await readyProject(context, api, ref);
  const url = projectUrl(project);
  const publicKey = await api.publicKey(ref);
  const before = await api.authConfig(ref);
  const after = withAddresses(before, urls);
  if (!isNew && isOfAnother(before, after.site_url)) {
    const shown = visible(before.site_url ?? "").slice(0, 200);
    await confirm(context, `${project.name} sends its users to ${shown}. Send them to ${after.site_url} instead?`);
  }
  await api.setAuthConfig(ref, after);
  context.note(`identity provider: the project ${project.name} at ${url}`);
  context.note('users sign in there once ENGINE_AUTH_BACKEND is "idp"; first say who may (docs/deployments.md)');
  return { url, publicKey };
}

type Chosen = { ref: ProjectRef; isNew: boolean };

async function chooseProject(context: CliContext, api: ManagementApi, name: string): Promise<Chosen> {
  const projects = await api.projects();
  if (projects.length > 0) {
    const lines = projects.map((one) => `${one.name} (${one.ref}, ${one.region})`);
    const picked = await pick(context, { what: "Project", lines, extra: NEW });
    const ref = projects[picked ?? -1]?.ref;
    if (ref !== undefined) return { ref, isNew: false };
  }
  return { ref: await makeProject(context, api, name), isNew: true };
}

async function makeProject(context: CliContext, api: ManagementApi, name: string): Promise<ProjectRef> {
  const organizations = await api.organizations();
  const lines = organizations.map((one) => one.name);
  const picked = lines.length > 1 ? await pick(context, { what: "Organization of the new project", lines }) : 0;
  const organization = organizations[picked ?? 0];
  if (organization === undefined) {
    throw new CliError("your account at the provider has no organization: make one there, then run this again");
  }
  const region = await askText(context, "Region of the new project (such as eu-central-1): ", "name a region");
  if (!REGION.test(region)) {
    throw new CliError(`${JSON.stringify(region.slice(0, 80))} is not the name of a region`, EXIT.usage);
  }
  const title = `engine-${name}`;
  // Nobody needs it: the engine does not use the project's database, and a new one can be set at the provider.
  const bytes = context.deps.random.fill(new Uint8Array(32));
  const databasePassword = Buffer.from(bytes).toString("base64url");
  const ref = await api.createProject({ name: title, organizationId: organization.id, region, databasePassword });
  context.note(`the project ${title} (${ref}) is made; waiting until it is ready`);
  return ref;
}

/** The index of a line; undefined for the extra answer. @throws CliError for any other */
async function pick(
  context: CliContext,
  { what, lines, extra }: { what: string; lines: readonly string[]; extra?: string },
): Promise<number | undefined> {
  for (const [i, line] of lines.entries()) context.note(`${i + 1}  ${line}`);
  const expected = `1 to ${lines.length}${extra === undefined ? "" : `, or ${extra}`}`;
  const text = await askText(context, `${what} (${expected}): `, `answer ${expected}`);
  if (text === extra) return undefined;
  const index = /^[1-9]\d{0,5}$/.test(text) ? Number(text) - 1 : lines.length;
  if (index < lines.length) return index;
  throw new CliError(`${JSON.stringify(text.slice(0, 80))} is not one of them; answer ${expected}`, EXIT.usage);
}

/** @throws CliError where it does not become ready */
async function readyProject({ deps: { clock } }: CliContext, api: ManagementApi, ref: ProjectRef): Promise<Project> {
  const untilMs = clock.monotonicMs() + READY_TIMEOUT_MS;
  for (;;) {
    const project = (await api.projects()).find((one) => one.ref === ref);
    if (project?.status === READY) return project;
    // The list may be older than the project.
    const status = project?.status ?? "UNKNOWN";
    if (!PASSING.has(status)) {
      throw new CliError(`the project ${ref} is ${status}: bring it up at the provider, then run this again`);
    }
    if (clock.monotonicMs() > untilMs) {
      const minutes = READY_TIMEOUT_MS / 60_000;
      throw new CliError(
        `the project ${ref} is not ready after ${minutes} min (${status}): run \`engine deploy init\` again later and choose it`,
      );
    }
    await sleep(clock, POLL_MS);
  }
}

/** What others have put into the list stays. */
function withAddresses({ uri_allow_list: listed }: AuthConfig, urls: ConnectOptions["urls"]) {
  const before = (listed ?? "").split(",").map((item) => item.trim());
  const ours = urls.flatMap((url) => [url, `${url}/**`]);
  const all = new Set([...before.filter((item) => item !== ""), ...ours]);
  return { site_url: urls[0], uri_allow_list: [...all].join(",") };
}

function isOfAnother({ site_url: before }: AuthConfig, ours: string): boolean {
  return !["", DEFAULT_SITE_URL, ours].includes((before ?? "").replace(/\/+$/, ""));
}
