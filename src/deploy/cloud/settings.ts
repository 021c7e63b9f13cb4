import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { CliError, EXIT } from "../../client/failure.ts";
import { askText } from "../../client/prompt.ts";
import { packageFolder } from "../../core/distribution.ts";
import type { ConnectIdentity, InitRequest } from "../target.ts";
import { parseState, type DeploymentSpec, type Prepared, type Workspace } from "../workspace.ts";
import { TOOLS } from "./tool.ts";

/**
 * What a cloud deployment was asked for: how it is made (`deployment.json`), and the variables of the modules, a file that
 * its user edits.
 */

export const VARIABLES_FILE = "terraform.tfvars.json";

const BUCKET = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/;
const REGION = /^[a-z]{2}(-[a-z]+)+-[0-9]$/;
const DOMAIN = /^(?=.{1,253}$)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]{2,63}$/;
/** An image in a registry of ECR: the right to pull it is one on its repository. */
const ECR_IMAGE = /^(\d{12})\.dkr\.ecr\.([a-z0-9-]+)\.amazonaws\.com\/([a-z0-9._/-]+)[:@]/;
/** What the names of AWS leave for that of the deployment. */
const MAX_NAME_CHARS = 20;
const NOTHING = "-";

const settingsSchema = z.strictObject({
  tool: z.enum(TOOLS),
  /** Bucket of Terraform's state; null keeps it in the workspace. */
  stateBucket: z.string().regex(BUCKET).nullable(),
  /** Where this machine reaches the deployment; null: at its own address. For balancers behind a tunnel. */
  probeUrl: z.url({ protocol: /^https?$/ }).nullable(),
});
export type CloudSettings = z.infer<typeof settingsSchema>;

/** Terraform takes null for nothing. */
const text = z
  .string()
  .nullish()
  .transform((value) => value ?? undefined);

/** Of the modules' variables those that `up` looks at; the modules check the rest. */
const variablesSchema = z.looseObject({
  name: z.string(),
  region: z.string().regex(REGION),
  domain: z.string().regex(DOMAIN),
  bucket: z.string(),
  image: text,
  zone_id: text,
  certificate_arn: text,
});
export type Variables = z.infer<typeof variablesSchema>;

/** @throws CliError for what a flag or an answer may not be */
export async function prepareCloud(request: InitRequest): Promise<Prepared> {
  const { name, flags } = request;
  if (name.length > MAX_NAME_CHARS) {
    throw new CliError(`--name is ${name}; a cloud deployment takes at most ${MAX_NAME_CHARS} characters`, EXIT.usage);
  }
  const tool = TOOLS.find((one) => one === (flags.tool ?? TOOLS[0]));
  if (tool === undefined) {
    throw new CliError(`--tool is ${JSON.stringify(flags.tool)}; expected ${TOOLS.join(" or ")}`, EXIT.usage);
  }
  const { env } = request.context.deps;
  const region = await chosen(request, "region", "AWS region: ", env["AWS_REGION"] ?? env["AWS_DEFAULT_REGION"]);
  if (!REGION.test(region) || !existsSync(bundled(`modules/catalog/authorities/${region}.pem`))) {
    throw new CliError(`--region is ${JSON.stringify(region)}: no region whose catalog could be verified`, EXIT.usage);
  }
  const domain = await chosen(request, "domain", "Host name that clients will use: ", undefined);
  if (!DOMAIN.test(domain)) {
    const expected = "a host name in lower case, such as engine.example.com";
    throw new CliError(`--domain is ${JSON.stringify(domain.slice(0, 80))}; expected ${expected}`, EXIT.usage);
  }
  const image = await asked(request, `Image of the engine, with registry and tag (${NOTHING}: later): `);
  const zone = await asked(request, `Zone of the domain in Route 53 (${NOTHING}: its DNS is elsewhere): `);
  const stateBucket = await asked(request, `S3 bucket for Terraform's state (${NOTHING}: this machine): `);
  if (stateBucket !== null && !BUCKET.test(stateBucket)) {
    throw new CliError(`${JSON.stringify(stateBucket.slice(0, 80))} is not the name of an S3 bucket`, EXIT.usage);
  }
  const variables = {
    name,
    region,
    domain,
    image,
    repository_arn: repositoryOf(image),
    zone_id: zone,
    certificate_arn: null,
    bucket: `${name}-${createHash("sha256").update(domain).digest("hex").slice(0, 12)}`,
    ...(JSON.parse(await readFile(bundled("envs/small/capacity.auto.tfvars.json"), "utf8")) as object),
  };
  const settings: CloudSettings = { tool, stateBucket, probeUrl: null };
  return {
    settings,
    files: [{ path: VARIABLES_FILE, text: `${JSON.stringify(variables, undefined, 2)}\n`, isSecret: false }],
    commands: [`${tool} init`, `${tool} plan -var-file=${VARIABLES_FILE} -out=plan`, `${tool} apply plan`],
  };
}

/** Into `env`, the options of all servers. The key is public. */
export async function addIdentity(
  _workspace: Workspace,
  prepared: Prepared,
  connect: ConnectIdentity,
): Promise<Prepared> {
  const [file, ...others] = prepared.files;
  if (file?.path !== VARIABLES_FILE) throw new Error(`${VARIABLES_FILE} is not the first file`);
  const variables = identityVariables.parse(JSON.parse(file.text));
  const { url, publicKey } = await connect([`https://${variables.domain}`]);
  const env = { ...variables.env, ENGINE_IDP_URL: url, ENGINE_IDP_ANON_KEY: publicKey };
  const text = `${JSON.stringify({ ...variables, env }, undefined, 2)}\n`;
  return { ...prepared, files: [{ ...file, text }, ...others] };
}

const identityVariables = z.looseObject({
  domain: z.string().regex(DOMAIN),
  env: z.record(z.string(), z.string()).default({}),
});

/** A file of the Terraform modules that came with this program. */
export function bundled(path: string): string {
  return join(packageFolder(), "terraform", path);
}

async function chosen(
  { flags, mayAsk, context }: InitRequest,
  flag: "region" | "domain",
  question: string,
  otherwise: string | undefined,
): Promise<string> {
  const given = flags[flag] ?? otherwise;
  if (given !== undefined) return given;
  if (!mayAsk) throw new CliError(`a cloud deployment needs --${flag}`, EXIT.usage);
  return await askText(context, question, `give --${flag}`);
}

async function asked({ mayAsk, context }: InitRequest, question: string): Promise<string | null> {
  if (!mayAsk) return null;
  const text = await askText(context, question, `answer ${NOTHING} for none`);
  return text === NOTHING ? null : text;
}

function repositoryOf(image: string | null): string | null {
  const [, account, region, repository] = ECR_IMAGE.exec(image ?? "") ?? [];
  return repository === undefined ? null : `arn:aws:ecr:${region}:${account}:repository/${repository}`;
}

/** @throws CliError for a damaged specification */
export function settingsOf(workspace: Workspace, { settings }: DeploymentSpec): CloudSettings {
  return parseState(workspace.path("deployment.json"), JSON.stringify(settings), settingsSchema);
}

/** @throws CliError where the file is not there, or says too little */
export async function variablesOf(workspace: Workspace): Promise<Variables> {
  const file = workspace.path(VARIABLES_FILE);
  const variables = await workspace.readJson(VARIABLES_FILE, variablesSchema);
  if (variables === undefined)
    throw new CliError(`${file} is not there: \`engine deploy init --force\` makes it again`);
  if (variables.name !== workspace.name) {
    throw new CliError(`${file} is of the deployment ${JSON.stringify(variables.name)}: put "${workspace.name}" back`);
  }
  if (variables.image === undefined) {
    throw new CliError(`${file} names no image: set "image" to that of the engine in a registry that AWS reaches`);
  }
  if (variables.zone_id === undefined && variables.certificate_arn === undefined) {
    throw new CliError(
      `${file} has neither "zone_id" (of ${variables.domain} in Route 53) nor "certificate_arn" (of ACM): set one of them`,
    );
  }
  return variables;
}
