import { printList } from "../print.ts";
import { benchmarksNamed } from "../registry.ts";
import type { Command } from "./command.ts";

export const list: Command = {
  usage: "[NAME]",
  doc: "what there is, with questions, options and measures",
  run: async ([name]) => {
    printList(await benchmarksNamed(name));
    return 0;
  },
};
