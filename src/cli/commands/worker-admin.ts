import type { Command } from "commander";
import { callApi, fieldCell, fieldText, listIn, withApiFlags, type ApiFlags, type Json } from "../../client/api.ts";
import type { CliContext } from "../../client/context.ts";
import { withExamples } from "../../client/examples.ts";
import { CliError, EXIT } from "../../client/failure.ts";
import { renderTable } from "../../client/table.ts";
import { visible } from "../../client/text.ts";

const WORKERS = "/v1/workers";

/** The commands by which operators admit workers and dismiss them; `group` is `engine worker`. */
export function registerAdmin(group: Command, context: CliContext): void {
  registerList(group, context);
  registerCreate(group, context);
  registerAdmit(group, context);
  registerRevoke(group, context);
}

function registerList(group: Command, context: CliContext): void {
  const command = withApiFlags(group.command("list").description("List the workers, and when they were last seen."));
  withExamples(command, ["engine worker list"]).action(
    context.action(async (flags: ApiFlags) => {
      const workers = listIn(await callApi(context, flags, "GET", WORKERS), "workers");
      const header = [
        "ID",
        "NAME",
        "STATUS",
        "CAPABILITIES",
        "OWNER",
        "JOBS OF",
        "LABELS",
        "HOST",
        "TOKEN",
        "LAST SEEN",
      ];
      if (flags.json) await context.writeJson(workers);
      else if (workers.length === 0) await context.writeLine("there are no workers");
      else await context.writeLine(renderTable(header, workers.map(row), context.style));
      return EXIT.ok;
    }),
  );
}

function row({
  id,
  name,
  status,
  drain,
  capabilities,
  admitted,
  owned_by: owner,
  labels,
  host,
  preview,
  ...rest
}: Json) {
  const shown = drain === true ? `${fieldText(status)}, draining` : status;
  const may = [capabilities ?? "all", owner, admittedText(admitted)];
  return [id, name, shown, ...may, labelsText(labels), host, preview, rest["seen_at"] ?? "never"].map(fieldCell);
}

function labelsText(labels: unknown): string | null {
  const all = typeof labels === "object" && labels !== null ? Object.entries(labels) : [];
  return all.length === 0 ? null : all.map(([name, value]) => `${name}=${fieldText(value)}`).join(", ");
}

type CreateFlags = ApiFlags & { name: string; capabilities?: string; labels?: string };

function registerCreate(group: Command, context: CliContext): void {
  const command = group
    .command("create")
    .description("Admit a worker, and print its token: this once.")
    .requiredOption("--name <name>", "what it is called")
    .option("--capabilities <kinds>", "kinds of jobs that it may claim, with commas between; all by default")
    .option("--labels <pairs>", "labels for the selectors of jobs: name=value, with commas between");
  withExamples(withApiFlags(command), [
    "engine worker create --name gpu-1 --capabilities x.render,x.train --labels gpu=yes,zone=b",
  ]).action(context.action((flags: CreateFlags) => create(context, flags)));
}

async function create(context: CliContext, flags: CreateFlags): Promise<number> {
  const { name, capabilities, labels } = flags;
  const made = await callApi(context, flags, "POST", WORKERS, {
    name,
    ...(capabilities === undefined ? {} : { capabilities: capabilities.split(",").map((kind) => kind.trim()) }),
    ...(labels === undefined ? {} : { labels: labelsIn(labels) }),
  });
  if (flags.json) {
    await context.writeJson(made);
    return EXIT.ok;
  }
  context.note(visible(`worker ${fieldText(made["worker_id"])} admitted; its token is shown this once`));
  await context.writeLine(visible(fieldText(made["token"])));
  return EXIT.ok;
}

function labelsIn(text: string): Record<string, string> {
  const labels = new Map<string, string>();
  for (const pair of text.split(",")) {
    const [, name = "", value = ""] = /^\s*([^=]*?)\s*=\s*(.*?)\s*$/.exec(pair) ?? [];
    if (name === "" || value === "") throw new CliError("--labels takes name=value, with commas between", EXIT.usage);
    if (labels.has(name)) throw new CliError(`--labels names ${visible(name)} twice`, EXIT.usage);
    labels.set(name, value);
  }
  return Object.fromEntries(labels);
}

type AdmitFlags = ApiFlags & { kinds?: string; none?: true };

function registerAdmit(group: Command, context: CliContext): void {
  const command = group
    .command("admit")
    .description(
      "Let a worker have everybody's jobs, not only those of its owner, with the credentials that they name. Needs the role admin.",
    )
    .argument("<worker-id>", "id of the worker, as `engine worker list` shows it")
    .option("--kinds <kinds>", "kinds of jobs, with commas between; all that it may claim by default")
    .option("--none", "only its owner's jobs from then on");
  withExamples(withApiFlags(command), [
    "engine worker admit 01977f3e-7c3a-7d2e-9d6f-0d5b0f4b6a11 --kinds sandbox,image_build",
  ]).action(
    context.action(async (id: string, flags: AdmitFlags) => {
      if (flags.none === true && flags.kinds !== undefined) {
        throw new CliError("--kinds and --none exclude each other", EXIT.usage);
      }
      const kinds = flags.kinds?.split(",").map((kind) => kind.trim()) ?? null;
      const admitted = flags.none === true ? [] : kinds;
      const worker = await callApi(context, flags, "POST", `${WORKERS}/${encodeURIComponent(id)}/admit`, { admitted });
      if (flags.json) await context.writeJson(worker);
      else await context.writeLine(visible(`worker ${id} may have jobs of ${admittedText(worker["admitted"])}`));
      return EXIT.ok;
    }),
  );
}

/** Of which kinds it may have everybody's jobs. */
function admittedText(admitted: unknown): string {
  if (!Array.isArray(admitted)) return "everybody";
  return admitted.length === 0 ? "its owner alone" : `everybody: ${admitted.map(fieldText).join(", ")}`;
}

function registerRevoke(group: Command, context: CliContext): void {
  const command = group
    .command("revoke")
    .description("Revoke a worker: its token is good for nothing from then on, and its jobs go to others.")
    .argument("<worker-id>", "id of the worker, as `engine worker list` shows it");
  withExamples(withApiFlags(command), ["engine worker revoke 01977f3e-7c3a-7d2e-9d6f-0d5b0f4b6a11"]).action(
    context.action(async (id: string, flags: ApiFlags) => {
      const answer = await callApi(context, flags, "DELETE", `${WORKERS}/${encodeURIComponent(id)}`);
      if (flags.json) await context.writeJson(answer);
      else await context.writeLine(visible(`worker ${id} revoked`));
      return EXIT.ok;
    }),
  );
}
