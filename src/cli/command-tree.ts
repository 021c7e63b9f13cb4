import type { Argument, Command, Option } from "commander";

/** A command of the tree as completions and the reference need it. */
export type CommandNode = {
  /** Words after `engine`. */
  path: readonly string[];
  command: Command;
  options: readonly Option[];
  arguments: readonly Argument[];
  children: readonly CommandNode[];
};

/** The tree below a command, `help` commands left out. */
export function commandTree(command: Command, path: readonly string[] = []): CommandNode {
  return {
    path,
    command,
    options: command.createHelp().visibleOptions(command),
    arguments: command.registeredArguments,
    children: visibleCommands(command).map((child) => commandTree(child, [...path, child.name()])),
  };
}

/** Without hidden ones, which the program starts by itself, and `help`. */
function visibleCommands(command: Command): readonly Command[] {
  const visible = new Set(command.createHelp().visibleCommands(command));
  return command.commands.filter((child) => visible.has(child));
}

/** The first sentence of a command's description. */
export function summaryOf(command: Command): string {
  return command.description().split(/(?<=\.)\s/)[0] ?? "";
}

/** The node and all below it, parents first. */
export function flatten(node: CommandNode): CommandNode[] {
  return [node, ...node.children.flatMap(flatten)];
}
