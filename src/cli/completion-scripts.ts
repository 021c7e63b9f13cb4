import type { Command, Option } from "commander";
import { commandTree, flatten, summaryOf, type CommandNode } from "./command-tree.ts";

/** Completion scripts, printed from the tree of commands: they hold everything and never run the program. */
export const SHELLS = ["bash", "zsh", "fish"] as const;
export type Shell = (typeof SHELLS)[number];

export function renderCompletions(shell: Shell, program: Command): string {
  const nodes = flatten(commandTree(program));
  if (shell === "bash") return bashScript(nodes);
  return shell === "zsh" ? zshScript(nodes) : fishScript(nodes);
}

/** Flags whose value is a file. */
function takesFile(option: Option): boolean {
  return /<file>/.test(option.flags);
}

function takesValue(option: Option): boolean {
  return option.required || option.optional;
}

function flagsOf(option: Option): string[] {
  return [option.short, option.long].filter((flag) => flag !== undefined);
}

function words(node: CommandNode): string[] {
  const choices = node.arguments.flatMap((argument) => argument.argChoices ?? []);
  return [...node.children.map((child) => child.command.name()), ...choices, ...node.options.flatMap(flagsOf)];
}

function bashScript(nodes: readonly CommandNode[]): string {
  const paths = nodes.map((node) => `    "${node.path.join(" ")}") words="${words(node).join(" ")}" ;;`);
  const groups = nodes.filter((node) => node.children.length > 0 && node.path.length > 0);
  const groupNames = groups.map((node) => `"${node.path.join(" ")}"`).join("|");
  const values = nodes.flatMap((node) =>
    node.options
      .filter(takesValue)
      .map((option) => `    "${node.path.join(" ")} ${option.long}") ${bashValue(option)} ;;`),
  );
  return `# Completions of engine for bash; load with: source <(engine completions bash)
_engine() {
  local cur="\${COMP_WORDS[COMP_CWORD]}" prev="\${COMP_WORDS[COMP_CWORD-1]}" path="" words="" word
  COMPREPLY=()
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$word" in -*) break ;; esac
    path="\${path:+$path }$word"
    case "$path" in ${groupNames}) ;; *) break ;; esac
  done
  case "$path $prev" in
${values.join("\n")}
  esac
  case "$path" in
${paths.join("\n")}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -F _engine engine
`;
}

function bashValue(option: Option): string {
  if (option.argChoices !== undefined)
    return `COMPREPLY=($(compgen -W "${option.argChoices.join(" ")}" -- "$cur")); return`;
  return takesFile(option) ? 'COMPREPLY=($(compgen -f -- "$cur")); return' : "return";
}

function zshScript(nodes: readonly CommandNode[]): string {
  return `#compdef engine
# Completions of engine for zsh; put this as _engine into a folder of $fpath.
${nodes.map(zshFunction).join("\n")}
if [ "$funcstack[1]" = "_engine" ]; then
  _engine "$@"
else
  compdef _engine engine
fi
`;
}

function zshName(node: CommandNode): string {
  return ["_engine", ...node.path.map((word) => word.replaceAll("-", "_"))].join("__");
}

function zshFunction(node: CommandNode): string {
  const options = node.options.map((option) => `    ${zshOption(option)}`);
  const rest =
    node.children.length > 0
      ? ["    '1: :->command'", "    '*:: :->rest'"]
      : node.arguments.map(
          (argument) => `    ${singleQuoted(`:${zshText(argument.name())}:${zshChoices(argument.argChoices)}`)}`,
        );
  const call = ["  _arguments -C", ...options, ...rest].join(" \\\n");
  if (node.children.length === 0) return `${zshName(node)}() {\n${call}\n}`;
  const described = node.children.map(
    (child) => `      ${singleQuoted(`${child.command.name()}:${summaryOf(child.command)}`)}`,
  );
  const dispatch = node.children.map((child) => `      ${child.command.name()}) ${zshName(child)} ;;`);
  return `${zshName(node)}() {
  local state line commands
${call}
  case $state in
    command)
      commands=(
${described.join("\n")}
      )
      _describe command commands ;;
    rest)
      case $line[1] in
${dispatch.join("\n")}
      esac ;;
  esac
}`;
}

function zshOption(option: Option): string {
  const action = option.argChoices === undefined ? (takesFile(option) ? "_files" : " ") : zshChoices(option.argChoices);
  const value = takesValue(option) ? `:${zshText(option.attributeName())}:${action}` : "";
  return flagsOf(option)
    .map((flag) => singleQuoted(`*${flag}[${zshText(option.description)}]${value}`))
    .join(" ");
}

function zshChoices(choices: readonly string[] | undefined): string {
  return choices === undefined ? " " : `(${choices.join(" ")})`;
}

function zshText(text: string): string {
  return text.replace(/[[\]:\\]/g, (char) => `\\${char}`);
}

function fishScript(nodes: readonly CommandNode[]): string {
  const lines = nodes.flatMap((node) => [
    ...fishWords(node),
    ...node.options.flatMap((option) => fishOption(node, option)),
  ]);
  return `# Completions of engine for fish; save as ~/.config/fish/completions/engine.fish
complete -c engine -f
${lines.join("\n")}
`;
}

/** When the words typed so far are exactly those of the node, and none of its children's. */
function fishCondition(node: CommandNode): string {
  const seen = node.path.map((word) => `__fish_seen_subcommand_from ${word}`);
  const children = node.children.map((child) => child.command.name()).join(" ");
  if (children !== "") seen.push(`not __fish_seen_subcommand_from ${children}`);
  return seen.length === 0 ? "true" : seen.join("; and ");
}

function fishWords(node: CommandNode): string[] {
  const condition = singleQuoted(fishCondition(node));
  const children = node.children.map(
    (child) =>
      `complete -c engine -n ${condition} -a ${child.command.name()} -d ${fishQuoted(summaryOf(child.command))}`,
  );
  const choices = node.arguments.flatMap((argument) => argument.argChoices ?? []);
  return choices.length === 0
    ? children
    : [...children, `complete -c engine -n ${condition} -a ${fishQuoted(choices.join(" "))}`];
}

function fishOption(node: CommandNode, option: Option): string {
  const names = [
    option.short === undefined ? "" : ` -s ${option.short.slice(1)}`,
    option.long === undefined ? "" : ` -l ${option.long.slice(2)}`,
  ].join("");
  const value = takesFile(option) ? " -r -F" : takesValue(option) ? " -x" : "";
  const choices = option.argChoices === undefined ? "" : ` -a ${fishQuoted(option.argChoices.join(" "))}`;
  return `complete -c engine -n ${singleQuoted(fishCondition(node))}${names}${value}${choices} -d ${fishQuoted(option.description)}`;
}

function singleQuoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

function fishQuoted(text: string): string {
  return `'${text.replace(/[\\']/g, (char) => `\\${char}`)}'`;
}
