import { writeFile } from "node:fs/promises";
import { type Command, Option } from "commander";
import { collect, type RegisterCommand } from "../../client/command.ts";
import type { CliContext } from "../../client/context.ts";
import { withExamples } from "../../client/examples.ts";
import { CliError, EXIT } from "../../client/failure.ts";
import { messageOf } from "../../core/errors.ts";
import { costModel } from "../costs/cost-model.ts";
import { readCosts, type Costs } from "../costs/costs.ts";
import { planFor, type Plan } from "../model/plan.ts";
import { textFetcher } from "../observe/fetch-text.ts";
import { observe } from "../observe/span.ts";
import { compareRoles, workloadTextOf } from "../observe/workload-of.ts";
import { htmlOf } from "../output/html.ts";
import { comparedSection, sectionsOf } from "../output/sections.ts";
import { textOf } from "../output/text.ts";
import { tfvarsOf } from "../output/tfvars.ts";
import { costOf, readPrices } from "../prices.ts";
import { parseSeconds } from "../units.ts";
import { parseWorkload, readWorkload, type Workload } from "../workload/workload.ts";

const FORMATS = ["text", "json", "html", "tfvars"] as const;
type Format = (typeof FORMATS)[number];
type Flags = {
  costs: string;
  prices?: string;
  format: Format;
  from?: readonly string[];
  span: string;
  shape: string;
  save?: string;
  token?: string;
};

export const register: RegisterCommand = (program, context) => {
  const command: Command = program
    .command("plan")
    .description("Say how many nodes of which size carry a workload, what it takes to store, and what runs out first.")
    .argument("[workload]", "TOML file of what has to be carried: see docs/capacity.md")
    .requiredOption(
      "--costs <file>",
      "what a machine was measured to spend: the file of `npm run bench -- full` in a checkout",
    )
    .option("--prices <file>", "TOML file of your prices; without it no cost is shown")
    .addOption(new Option("--format <format>", "how to print it").choices(FORMATS).default("text"))
    .option(
      "--from <url>",
      "in place of a workload: servers to watch, or a Prometheus that scrapes them; may be repeated",
      collect,
    )
    .option("--span <time>", "how long they are watched; a Prometheus tells of so long a time at once", "60 s")
    .option("--shape <name>", "which of the measured shapes their rows are like", "logs")
    .option("--save <file>", "write what they do as a workload, to be changed and planned again")
    .option("--token <token>", "bearer token for their metrics (ENGINE_TOKEN)");
  withExamples(command, [
    "engine plan workload.toml --costs costs.json",
    "engine plan workload.toml --costs costs.json --prices prices.toml --format html > plan.html",
    "engine plan workload.toml --costs costs.json --format tfvars > capacity.auto.tfvars.json",
    'engine plan --from http://prometheus:9090 --span "1 h" --costs costs.json --save seen.toml',
  ]).action(context.action((path: string | undefined, flags: Flags) => plan(context, path, flags)));
};

async function plan(context: CliContext, path: string | undefined, flags: Flags) {
  const { costs: costsPath, prices, format, from } = flags;
  if ((path === undefined) === (from === undefined))
    throw new CliError("give a workload file, or servers with --from: one of them", EXIT.usage);
  const costs = await refused(() => readCosts(costsPath));
  const model = costModel(costs);
  const seen = from === undefined ? undefined : await seenAt(context, from, flags);
  const workload = await refused(async () =>
    seen === undefined ? await readWorkload(path ?? "") : parseWorkload(from?.join(" ") ?? "", seen.text),
  );
  const planned = await refused(async () => planFor(workload, model));
  if (costs.version !== context.deps.version)
    context.warn(`${costsPath} is of version ${costs.version}, this is ${context.deps.version}: measure it again`);
  const cost = prices === undefined ? undefined : costOf(planned, await refused(() => readPrices(prices)));
  const compared = seen === undefined ? undefined : compareRoles(seen.observed, model, workload, planned.roles);
  const sections = [...(compared === undefined ? [] : [comparedSection(compared)]), ...sectionsOf(planned, cost)];
  switch (format) {
    case "json":
      await context.writeJson({ ...planned, cost: cost ?? null, seen: compared ?? null });
      break;
    case "tfvars":
      await context.writeLine(JSON.stringify(await refused(async () => tfvarsOf(planned, workload)), undefined, 2));
      break;
    case "html":
      await context.write(htmlOf(titleOf(workload, planned, costs), sections, planned));
      break;
    case "text":
      await context.writeLine(textOf(titleOf(workload, planned, costs), sections, context.style));
      break;
  }
  return planned.unreached.length === 0 ? EXIT.ok : EXIT.failed;
}

/** Watches servers, and writes down what they do where that is asked for. */
async function seenAt(context: CliContext, from: readonly string[], { span, shape, save, token }: Flags) {
  const seconds = await refused(async () => parseSeconds(span));
  const fetchText = textFetcher(token ?? context.deps.env["ENGINE_TOKEN"]);
  const { observed, text } = await observe(from, seconds, { fetchText, clock: context.deps.clock })
    .then((seen) => ({ observed: seen, text: workloadTextOf(seen, shape) }))
    .catch((error: unknown) => {
      throw new CliError(messageOf(error), EXIT.failed, { cause: error });
    });
  if (save !== undefined) await writeFile(save, text);
  return { observed, text };
}

function titleOf({ name }: Workload, { mode }: Plan, { machine, measuredAt }: Costs): string {
  const day = measuredAt.slice(0, 10);
  return `Plan of ${name} in mode ${mode}, by costs of ${machine.processor} × ${machine.cores} on ${day}`;
}

/** What a file says wrongly is a wrong use. */
async function refused<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw new CliError(messageOf(error), EXIT.usage, { cause: error });
  }
}
