import { renderTable, textCell } from "../../client/table.ts";
import type { Style } from "../../client/text.ts";
import { visible } from "../../client/text.ts";
import type { Section } from "./sections.ts";

/** A plan for a terminal. */
export function textOf(title: string, sections: readonly Section[], style: Style): string {
  const parts = sections.map((section) => {
    const body =
      "sentences" in section
        ? section.sentences.map((each) => `- ${visible(each)}`).join("\n")
        : section.rows.length === 0
          ? "nothing"
          : renderTable(
              section.head,
              section.rows.map((row) => row.map(textCell)),
              style,
            );
    return `${style("bold", visible(section.title))}\n\n${body}`;
  });
  return [style("bold", visible(title)), ...parts].join("\n\n");
}
