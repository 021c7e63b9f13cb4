import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import type { EdgeRecord, NodeRecord } from "../../src/knowledge/memory/model.ts";
import { readArguments } from "../support/arguments.ts";
import { machine, printTable, shown } from "../support/report.ts";
import { Fts, indexOf, LIMIT, recalled, WAYS } from "./sides.ts";
import { edgeOf, nodeOf, uuid } from "./texts.ts";

/**
 * Question: are headings answered by their own paragraphs, against FTS5, and with edges between paragraphs that follow
 * one another in a document, those of other headings too, as memories do in a session?
 *
 *     node bench/memory/known-items.ts [--documents FOLDER]
 *
 * - `recall@10`, the target: the share of a heading's paragraphs among the first ten, for all of them answer it.
 * - `success@10`: the share of headings with any of their paragraphs there. Edges between paragraphs hardly change that:
 *   they lead from one that was found to others.
 *
 * Documents are the Markdown files below a folder: those of this repository and of its packages unless given. A folder's
 * documents are in one of two parts by the hash of its name. Parameters are chosen on the texts for training alone.
 */
const OPTIONS = { documents: { type: "string" } } as const;

export function main(args: readonly string[]): void {
  const options = readArguments(args, OPTIONS);
  console.log(machine());
  const repository = fileURLToPath(new URL("../..", import.meta.url));
  const given = options.text("documents");
  const folders = given === undefined ? [join(repository, "docs"), join(repository, "node_modules")] : [given];
  const documents = folders.flatMap((folder) => markdownBelow(folder).map((name) => ({ folder, name })));
  for (const part of ["training", "held out"] as const) {
    const own = documents.filter(({ folder, name }) => partOf(relative(folder, name)) === part);
    knownItems(
      part,
      own.map(({ name }) => sectionsOf(name)),
    );
  }
}

function partOf(name: string): "training" | "held out" {
  // A package's documents are alike.
  const [first = "", second = ""] = name.split("/");
  const folder = first.startsWith("@") ? `${first}/${second}` : first;
  return (createHash("sha256").update(folder).digest()[0] ?? 0) % 2 === 0 ? "training" : "held out";
}

type Section = { heading: string; paragraphs: string[] };

function knownItems(part: string, documents: readonly Section[][]): void {
  const sections = documents.flat();
  const nodes: NodeRecord[] = [];
  const edges: EdgeRecord[] = [];
  const sectionOf = new Map<string, Section>();
  for (const own of documents) {
    const paragraphs = own.flatMap((section) => section.paragraphs.map((text) => ({ section, text })));
    for (const [i, { section, text }] of paragraphs.entries()) {
      const id = uuid(nodes.length);
      if (i > 0) edges.push(edgeOf(edges.length, uuid(nodes.length - 1), id, "follows"));
      nodes.push(nodeOf(nodes.length, false, text));
      sectionOf.set(id, section);
    }
  }
  const index = indexOf(nodes, edges);
  const fts = new Fts(nodes);
  const answered = (ask: (heading: string) => string[]): Answered => {
    let [recall, success] = [0, 0];
    for (const section of sections) {
      const right = ask(section.heading).filter((id) => sectionOf.get(id) === section).length;
      recall += right / Math.min(section.paragraphs.length, LIMIT);
      if (right > 0) success++;
    }
    return { recall: recall / sections.length, success: success / sections.length };
  };
  const fts5 = answered((heading) => fts.find(heading));
  const rows = [
    ...WAYS.map(({ name, ...way }): [string, Answered] => [name, answered((heading) => recalled(index, heading, way))]),
    ["FTS5", fts5] as const,
  ];
  console.log(`${part}: ${sections.length} headings over ${nodes.length} paragraphs`);
  printTable(
    ["side", `recall@${LIMIT}`, "it / FTS5", `success@${LIMIT}`, "it / FTS5"],
    rows.map(([name, { recall, success }]) => [
      name,
      shown(recall),
      `${(recall / fts5.recall).toFixed(3)}×`,
      shown(success),
      `${(success / fts5.success).toFixed(3)}×`,
    ]),
  );
}

type Answered = { recall: number; success: number };

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

if (process.argv[1] === fileURLToPath(import.meta.url)) main(process.argv.slice(2));
