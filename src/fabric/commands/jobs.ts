import { Option, type Command } from "commander";
import { JOB_STATUSES } from "../job.ts";
import { callApi, fieldCell, fieldText, listIn, withApiFlags, type ApiFlags, type Json } from "../../client/api.ts";
import type { CliContext } from "../../client/context.ts";
import { withExamples } from "../../client/examples.ts";
import { EXIT } from "../../client/failure.ts";
import { followJob, type JobEvent } from "./job-follow.ts";
import type { RegisterCommand } from "../../client/command.ts";
import { renderTable } from "../../client/table.ts";
import { resolveTarget } from "../../client/target.ts";
import { visible } from "../../client/text.ts";

const JOBS = "/v1/jobs";
const EXAMPLE_ID = "01977f3e-7c3a-7d2e-9d6f-0d5b0f4b6a11";

export const register: RegisterCommand = (program, context) => {
  const group = program.command("jobs").description("See and steer what the engine does in the background.");
  registerList(group, context);
  registerShow(group, context);
  registerCancel(group, context);
  registerRetry(group, context);
};

type ListFlags = ApiFlags & { kind?: string; status?: string; limit: string };

function registerList(group: Command, context: CliContext): void {
  const command = group
    .command("list")
    .description("List jobs, the newest first.")
    .option("--kind <kind>", "only those of this kind")
    .addOption(new Option("--status <status>", "only those of this status").choices(JOB_STATUSES))
    .option("--limit <count>", "at most so many", "50");
  withExamples(withApiFlags(command), ["engine jobs list", "engine jobs list --status failed --limit 10"]).action(
    context.action((flags: ListFlags) => list(context, flags)),
  );
}

async function list(context: CliContext, flags: ListFlags): Promise<number> {
  const { kind, status, limit } = flags;
  const query = new URLSearchParams({ limit, ...(kind && { kind }), ...(status && { status }) });
  const jobs = listIn(await callApi(context, flags, "GET", `${JOBS}?${query.toString()}`), "jobs");
  const header = ["ID", "KIND", "STATUS", "DATABASE", "ATTEMPT", "HOLDER", "CREATED", "ERROR"];
  if (flags.json) await context.writeJson(jobs);
  else if (jobs.length === 0) await context.writeLine("there are no jobs");
  else await context.writeLine(renderTable(header, jobs.map(row), context.style));
  return EXIT.ok;
}

function row({ id, kind, status, database, attempt, max_attempts: most, holder, created_at: created, error }: Json) {
  const tries = `${fieldText(attempt)}/${fieldText(most)}`;
  return [id, kind, status, database, tries, holder, created, error].map(fieldCell);
}

type ShowFlags = ApiFlags & { follow?: true };

function registerShow(group: Command, context: CliContext): void {
  const command = group
    .command("show")
    .description("Show one job. With --follow, its log and what becomes of it, until it is finished.")
    .argument("<id>", "id of the job")
    .option("--follow", "print what happens; the exit code is 1 when the job ends otherwise than done");
  withExamples(withApiFlags(command), [
    `engine jobs show ${EXAMPLE_ID}`,
    `engine jobs show ${EXAMPLE_ID} --follow`,
  ]).action(
    context.action((id: string, flags: ShowFlags) =>
      flags.follow === true ? follow(context, id, flags) : show(context, id, flags),
    ),
  );
}

const FIELD_WIDTH = 18;

async function show(context: CliContext, id: string, flags: ApiFlags): Promise<number> {
  const job = await callApi(context, flags, "GET", pathOf(id));
  if (flags.json) await context.writeJson(job);
  else {
    for (const [name, value] of Object.entries(job)) {
      await context.writeLine(visible(`${name.replaceAll("_", " ").padEnd(FIELD_WIDTH)}${fieldText(value)}`));
    }
  }
  return EXIT.ok;
}

/** With `--json` each event is a line. */
async function follow(context: CliContext, id: string, flags: ApiFlags): Promise<number> {
  const target = await resolveTarget(
    context,
    await context.loadConfig({ serverUrl: flags.server, token: flags.token }),
  );
  let status: unknown;
  let told = "";
  for await (const event of followJob(context, target, id)) {
    const line = flags.json ? JSON.stringify(event) : lineOf(event);
    // Each connection begins with the state.
    const isNews = event.event !== "state" || line !== told;
    if (event.event === "state") told = line ?? "";
    if (event.event === "end") status = event.data["status"];
    if (line !== undefined && isNews) await context.writeLine(line);
  }
  return status === "done" ? EXIT.ok : EXIT.failed;
}

function lineOf({ event, data }: JobEvent): string | undefined {
  if (event === "log") {
    return visible(`${fieldText(data["at"])} ${fieldText(data["level"]).padEnd(5)} ${fieldText(data["message"])}`);
  }
  if (event !== "state") return undefined;
  const { status, attempt, max_attempts: most, holder, progress, error } = data;
  const parts = [
    `job ${fieldText(status)}`,
    `attempt ${fieldText(attempt)}/${fieldText(most)}`,
    ...(status === "leased" ? [`on ${fieldText(holder)}`] : []),
    ...(progress === null || progress === undefined ? [] : [`progress ${fieldText(progress)}`]),
    ...(error === null || error === undefined ? [] : [`error: ${fieldText(error)}`]),
  ];
  return visible(parts.join(", "));
}

function registerCancel(group: Command, context: CliContext): void {
  const command = group
    .command("cancel")
    .description("Cancel a job. One that runs is told to stop, and may end otherwise.")
    .argument("<id>", "id of the job");
  withExamples(withApiFlags(command), [`engine jobs cancel ${EXAMPLE_ID}`]).action(
    context.action((id: string, flags: ApiFlags) => change(context, `${pathOf(id)}/cancel`, flags)),
  );
}

function registerRetry(group: Command, context: CliContext): void {
  const command = group
    .command("retry")
    .description("Queue a job again that has failed or was cancelled.")
    .argument("<id>", "id of the job");
  withExamples(withApiFlags(command), [`engine jobs retry ${EXAMPLE_ID}`]).action(
    context.action((id: string, flags: ApiFlags) => change(context, `${pathOf(id)}/retry`, flags)),
  );
}

async function change(context: CliContext, path: string, flags: ApiFlags): Promise<number> {
  const job = await callApi(context, flags, "POST", path);
  const isStopping = job["status"] === "leased" && job["cancel_requested"] === true;
  const says = isStopping ? "is told to stop" : `is ${fieldText(job["status"])}`;
  if (flags.json) await context.writeJson(job);
  else await context.writeLine(visible(`job ${fieldText(job["id"])} ${says}`));
  return EXIT.ok;
}

function pathOf(id: string): string {
  return `${JOBS}/${encodeURIComponent(id)}`;
}
