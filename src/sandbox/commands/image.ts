import { readFile } from "node:fs/promises";
import type { Command } from "commander";
import { sleep } from "../../core/clock.ts";
import { messageOf } from "../../core/errors.ts";
import {
  callTarget,
  deleteAt,
  fieldCell,
  fieldText,
  targetOf,
  withApiFlags,
  type ApiFlags,
  type Json,
} from "../../client/api.ts";
import type { Target } from "../../client/client.ts";
import type { CliContext } from "../../client/context.ts";
import { withExamples } from "../../client/examples.ts";
import { CliError, EXIT } from "../../client/failure.ts";
import { collect, type RegisterCommand } from "../../client/command.ts";
import { pairsIn } from "./sandbox-create.ts";
import { renderTable } from "../../client/table.ts";
import { visible } from "../../client/text.ts";

const IMAGES = "/api/v1/images";
const EXAMPLE_ID = "01977f3e-7c3a-7d2e-9d6f-0d5b0f4b6a13";
const POLL_MS = 500;

export const register: RegisterCommand = (program, context) => {
  const group = program.command("image").description("Build images that sandboxes are made from.");
  registerBuild(group, context);
  registerList(group, context);
  registerShow(group, context);
  registerShare(group, context);
  registerRemove(group, context);
};

type BuildFlags = ApiFlags & {
  provider: string;
  region?: string;
  instanceType?: string;
  var?: string[];
  detach?: true;
};

function registerBuild(group: Command, context: CliContext): void {
  const command = group
    .command("build")
    .description("Build an image, and wait until it is there; prints its id.")
    .argument("[template]", "template file, in TOML; the default one of the provider otherwise")
    .option("--provider <provider>", "coding agent that it is for", "claude-code")
    .option("--region <region>", "where it is built")
    .option("--instance-type <type>", "what it is built on")
    .option("--var <name=value>", "variable of the template; may be repeated", collect)
    .option("--detach", "do not wait; prints the id of the build");
  withExamples(withApiFlags(command), [
    "engine image build",
    "engine image build image.toml --provider codex --var node=22.23.3",
  ]).action(context.action((file: string | undefined, flags: BuildFlags) => build(context, file, flags)));
}

async function build(context: CliContext, file: string | undefined, flags: BuildFlags): Promise<number> {
  const { provider, region, instanceType, var: variables } = flags;
  const body = {
    provider,
    ...(region !== undefined && { region }),
    ...(instanceType !== undefined && { instance_type: instanceType }),
    ...(file !== undefined && { template_source: await templateIn(file) }),
    ...(variables && { variables: pairsIn(variables, "--var") }),
  };
  const target = await targetOf(context, flags);
  const asked = await callTarget(context, target, "POST", `${IMAGES}/build`, body);
  const id = fieldText(asked["build_id"]);
  const shown = flags.detach === true ? asked : await waitUntilBuilt(context, target, id);
  if (flags.json) await context.writeJson(shown);
  else await context.writeLine(visible(flags.detach === true ? id : fieldText(shown["image_id"])));
  return EXIT.ok;
}

async function templateIn(file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    throw new CliError(`the template cannot be read: ${messageOf(error)}`, EXIT.usage, { cause: error });
  }
}

async function waitUntilBuilt(context: CliContext, target: Target, id: string): Promise<Json> {
  for (;;) {
    const found = await callTarget(context, target, "GET", buildPath(id));
    const { status } = found;
    if (status === "succeeded") return found;
    if (status === "failed") throw new CliError(`image build ${id} failed: ${fieldText(found["error"])}`);
    await sleep(context.deps.clock, POLL_MS);
  }
}

function buildPath(id: string): string {
  return `${IMAGES}/builds/${encodeURIComponent(id)}`;
}

type ListFlags = ApiFlags & { region?: string; provider?: string };

function registerList(group: Command, context: CliContext): void {
  const command = group
    .command("list")
    .alias("ls")
    .description("List images, the newest first.")
    .option("--region <region>", "only those of this region")
    .option("--provider <provider>", "only those for this coding agent");
  withExamples(withApiFlags(command), ["engine image list", "engine image list --provider codex --json"]).action(
    context.action((flags: ListFlags) => list(context, flags)),
  );
}

async function list(context: CliContext, flags: ListFlags): Promise<number> {
  const { region, provider } = flags;
  const filter = { ...(region && { region }), ...(provider && { provider }) };
  const found = await allImages(context, await targetOf(context, flags), filter);
  if (flags.json) await context.writeJson(found);
  else if (found.length === 0) await context.writeLine("there are no images");
  else {
    const header = ["ID", "PROVIDER", "REGION", "STATUS", "BYTES", "SHARED", "CREATED"];
    await context.writeLine(renderTable(header, found.map(row), context.style));
  }
  return EXIT.ok;
}

const PAGE = 1_000;

async function allImages(
  context: CliContext,
  target: Target,
  filter: Readonly<Record<string, string>>,
): Promise<Json[]> {
  const all: Json[] = [];
  for (;;) {
    const last = all.at(-1);
    const before = last === undefined ? {} : { before: fieldText(last["image_id"]) };
    const query = new URLSearchParams({ ...filter, limit: String(PAGE), ...before });
    const { images } = await callTarget(context, target, "GET", `${IMAGES}?${query.toString()}`);
    const found = Array.isArray(images) ? (images as readonly Json[]) : [];
    all.push(...found);
    if (found.length !== PAGE) return all;
  }
}

function row({ image_id: id, provider, region, status, size_bytes: bytes, shared, created_at: created }: Json) {
  return [id, provider, region, status, bytes, shared === true ? "yes" : "no", created].map(fieldCell);
}

function registerShow(group: Command, context: CliContext): void {
  const command = group
    .command("show")
    .description("Show an image build: how far it is, and which image it made.")
    .argument("<build>", "id of the build");
  withExamples(withApiFlags(command), [`engine image show ${EXAMPLE_ID}`]).action(
    context.action(async (id: string, flags: ApiFlags) => {
      const found = await callTarget(context, await targetOf(context, flags), "GET", buildPath(id));
      if (flags.json) await context.writeJson(found);
      else {
        const rows = Object.entries(found).map(([name, value]) => [name.replaceAll("_", " "), value].map(fieldCell));
        await context.writeLine(renderTable(["FIELD", "VALUE"], rows, context.style));
      }
      return EXIT.ok;
    }),
  );
}

function registerShare(group: Command, context: CliContext): void {
  const command = group
    .command("share")
    .description("Let everybody make sandboxes and images of an image, and so see its files.")
    .argument("<image>", "id of the image")
    .option("--off", "from now on only its owner may use it");
  withExamples(withApiFlags(command), [`engine image share ${EXAMPLE_ID}`]).action(
    context.action(async (id: string, flags: ApiFlags & { off?: true }) => {
      const shared = flags.off !== true;
      const path = `${IMAGES}/${encodeURIComponent(id)}`;
      const found = await callTarget(context, await targetOf(context, flags), "PATCH", path, { shared });
      if (flags.json) await context.writeJson(found);
      else await context.writeLine(visible(`image ${id} is ${shared ? "shared" : "its owner's alone"}`));
      return EXIT.ok;
    }),
  );
}

function registerRemove(group: Command, context: CliContext): void {
  const command = group
    .command("rm")
    .description("Delete images; sandboxes that have them keep them.")
    .argument("<id...>", "ids of images");
  withExamples(withApiFlags(command), [`engine image rm ${EXAMPLE_ID}`]).action(
    context.action(async (ids: string[], flags: ApiFlags) => {
      const target = await targetOf(context, flags);
      for (const id of ids) {
        await deleteAt(context, target, `${IMAGES}/${encodeURIComponent(id)}`);
        if (!flags.json) await context.writeLine(visible(`deleted ${id}`));
      }
      if (flags.json) await context.writeJson({ deleted: ids });
      return EXIT.ok;
    }),
  );
}
