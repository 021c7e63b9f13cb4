import { countText, fieldText, listIn } from "../../../client/api.ts";
import { collect, type RegisterCommand } from "../../../client/command.ts";
import type { CliContext } from "../../../client/context.ts";
import { withExamples } from "../../../client/examples.ts";
import { CliError, EXIT } from "../../../client/failure.ts";
import { visible } from "../../../client/text.ts";
import { callTool, withToolFlags, type ToolFlags } from "./call-tool.ts";

type Flags = ToolFlags & { kind: string; realm?: string; content?: string; prop?: string[]; link?: string[] };

export const register: RegisterCommand = (program, context) => {
  const command = program
    .command("entity")
    .description("Create or update an entity, and link it. One of the same realm, kind and name is the same entity.")
    .argument("<name>", "what it is called")
    .requiredOption("--kind <kind>", "what it is, in lower case: person, service, …")
    .option("--realm <realm>", "where it belongs; `default` by default")
    .option("--content <text>", "what is to be said of it")
    .option("--prop <k=v>", "a property, as text; may be repeated", collect)
    .option("--link <node>", "node_id[|namespace[|rel]] to link it with; may be repeated", collect);
  withExamples(withToolFlags(command), [
    "engine entity gateway --kind service --prop port=8080 --prop owner=ann",
    "engine entity ann --kind person --link '01977f3e-7c3a-7d2e-9d6f-0d5b0f4b6a11|memory|decided'",
  ]).action(context.action((name: string, flags: Flags) => save(context, name, flags)));
};

async function save(context: CliContext, name: string, flags: Flags): Promise<number> {
  const { kind, realm, content, prop, link } = flags;
  const saved = await callTool(context, flags, "ingest_entity", {
    name,
    kind,
    realm,
    content,
    props: prop === undefined ? undefined : propsOf(prop),
    links: link?.map(linkOf),
  });
  const edges = listIn(saved, "edges").length;
  const links = edges === 0 ? "" : `, with ${countText(edges, "link")}`;
  if (flags.json === true) await context.writeJson(saved);
  else await context.writeLine(visible(`entity ${fieldText(saved["id"])} ${fieldText(saved["outcome"])}${links}`));
  return EXIT.ok;
}

function propsOf(given: readonly string[]): Record<string, string> {
  const props = new Map<string, string>();
  for (const text of given) {
    const at = text.indexOf("=");
    if (at < 1) throw new CliError(`--prop is key=value, not ${JSON.stringify(text)}`, EXIT.usage);
    const key = text.slice(0, at);
    if (props.has(key)) throw new CliError(`--prop ${JSON.stringify(key)} is given twice`, EXIT.usage);
    props.set(key, text.slice(at + 1));
  }
  return Object.fromEntries(props);
}

/** An empty namespace or relation is the default one: `id||decided`. */
function linkOf(text: string): { node_id: string; namespace?: string; rel?: string } {
  const [id = "", namespace = "", rel = "", ...more] = text.split("|");
  if (id === "" || more.length > 0) {
    throw new CliError(`--link is node_id[|namespace[|rel]], not ${JSON.stringify(text)}`, EXIT.usage);
  }
  return { node_id: id, ...(namespace !== "" && { namespace }), ...(rel !== "" && { rel }) };
}
