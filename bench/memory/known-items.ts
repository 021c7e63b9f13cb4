import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import type { EdgeRecord, NodeRecord } from "../../src/knowledge/memory/model.ts";
import { defineBenchmark } from "../suite/benchmark.ts";
import { Fts, indexOf, LIMIT, recalled, WAYS } from "./sides.ts";
import { edgeOf, nodeOf, uuid } from "./texts.ts";

export const benchmark = defineBenchmark({
  name: "memory/known-items",
  question:
    "Are headings answered by their own paragraphs, against FTS5, and with edges between paragraphs that follow one " +
    "another in a document, those of other headings too, as memories do in a session?",
  notMeasured:
    "Time. Edges between paragraphs hardly change how many headings have any answer: they lead from one that was found " +
    "to others.",
  options: z.strictObject({
    documents: z
      .string()
      .optional()
      .describe("folder of Markdown; those of this repository and of its packages unless given"),
    part: z
      .enum(["training", "held-out"])
      .default("held-out")
      .describe("of the documents, by their folder; parameters are chosen on those for training alone"),
  }),
  measures: {
    recall: {
      unit: "of 1",
      better: "more",
      doc: `a heading's paragraphs among the first ${LIMIT}, which is the target`,
    },
    success: { unit: "of 1", better: "more", doc: `headings with any of their paragraphs among the first ${LIMIT}` },
  },
  rounds: 1,
  hasPeers: true,
  open: async ({ documents, part }) => {
    const items = itemsOf(documentsOf(documents, part));
    const index = indexOf(items.nodes, items.edges);
    const fts = new Fts(items.nodes);
    const ours = WAYS.toReversed().map(({ name, ...way }) => ({
      name,
      round: async () => answered(items, (heading) => recalled(index, heading, way)),
    }));
    return { sides: [...ours, { name: "FTS5", round: async () => answered(items, (heading) => fts.find(heading)) }] };
  },
});

type Part = "training" | "held-out";

/** Files of that part. Throws a sentence where there is none. */
function documentsOf(given: string | undefined, part: Part): string[] {
  const repository = fileURLToPath(new URL("../..", import.meta.url));
  const folders = given === undefined ? [join(repository, "docs"), join(repository, "node_modules")] : [given];
  const files = folders.flatMap((folder) =>
    markdownBelow(folder).filter((name) => partOf(relative(folder, name)) === part),
  );
  if (files.length === 0) throw new Error(`there is no Markdown in ${folders.join(", ")}`);
  return files;
}

function partOf(name: string): Part {
  // A package's documents are alike.
  const [first = "", second = ""] = name.split("/");
  const folder = first.startsWith("@") ? `${first}/${second}` : first;
  return (createHash("sha256").update(folder).digest()[0] ?? 0) % 2 === 0 ? "training" : "held-out";
}

type Section = { heading: string; paragraphs: string[] };
type Items = { sections: Section[]; nodes: NodeRecord[]; edges: EdgeRecord[]; sectionOf: Map<string, Section> };

function itemsOf(files: readonly string[]): Items {
  const items: Items = { sections: [], nodes: [], edges: [], sectionOf: new Map() };
  const { sections, nodes, edges, sectionOf } = items;
  for (const file of files) {
    const own = sectionsOf(file);
    sections.push(...own);
    const paragraphs = own.flatMap((section) => section.paragraphs.map((text) => ({ section, text })));
    for (const [i, { section, text }] of paragraphs.entries()) {
      const id = uuid(nodes.length);
      if (i > 0) edges.push(edgeOf(edges.length, uuid(nodes.length - 1), id, "follows"));
      nodes.push(nodeOf(nodes.length, false, text));
      sectionOf.set(id, section);
    }
  }
  return items;
}

function answered({ sections, sectionOf }: Items, ask: (heading: string) => string[]): Record<string, number> {
  let [recall, success] = [0, 0];
  for (const section of sections) {
    const right = ask(section.heading).filter((id) => sectionOf.get(id) === section).length;
    recall += right / Math.min(section.paragraphs.length, LIMIT);
    if (right > 0) success++;
  }
  return { recall: recall / sections.length, success: success / sections.length };
}

const MOST_FILES = 3_000;

function markdownBelow(folder: string): string[] {
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => /\.md$/i.test(name));
  return files
    .toSorted()
    .slice(0, MOST_FILES)
    .map((name) => join(folder, name));
}

/** Headings of several words that say something, with paragraphs that do not repeat them. */
function sectionsOf(file: string): Section[] {
  const text = readFileSync(file, "utf8").replace(/```[^]*?```/g, "");
  return text
    .split(/^#{2,4} +/m)
    .slice(1)
    .flatMap((part) => {
      const [first = "", ...rest] = part.split("\n");
      const heading = first.replace(/[`*#[\]]|\(.*?\)/g, "").trim();
      const paragraphs = rest
        .join("\n")
        .split(/\n\s*\n/)
        .map((each) => each.trim());
      const long = paragraphs.filter((each) => each.length >= 80 && each.length <= 4_000);
      return heading.split(" ").length >= 2 && long.length >= 2 ? [{ heading, paragraphs: long }] : [];
    });
}
