import { existsSync, globSync, readFileSync } from "node:fs";
import { basename, dirname, join, normalize } from "node:path";
import { describe, expect, test } from "vitest";

/** What a reader follows: the guides, without what tests and benchmarks say of themselves. */
const DOCUMENTS = ["README.md", "CONTRIBUTING.md", "bench/README.md", ...globSync("docs/*.md")];
const textOf = (path: string) => readFileSync(path, "utf8");
const withoutCode = (text: string) => text.replaceAll(/^```.*?^```$/gms, "");

/** As GitHub makes them: lower case, without punctuation, hyphens for blanks. */
function anchorsOf(path: string): Set<string> {
  const headings = [...withoutCode(textOf(path)).matchAll(/^#+ (.+)$/gm)].map(([, heading = ""]) => heading);
  const anchors = headings.map((heading) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\w\- ]/g, "")
      .replaceAll(" ", "-"),
  );
  return new Set(anchors);
}

describe.each(DOCUMENTS)("%s", (path) => {
  test("links to what there is", () => {
    const links = [...withoutCode(textOf(path)).matchAll(/\]\((?!https?:|mailto:)([^)\s]+)\)/g)];
    const broken = links.flatMap(([, link = ""]) => {
      const [file = "", anchor] = link.split("#");
      const target = file === "" ? path : normalize(join(dirname(path), file));
      if (!existsSync(target)) return [link];
      return anchor === undefined || anchorsOf(target).has(anchor) ? [] : [link];
    });
    expect(broken).toEqual([]);
  });

  test("names files that there are", () => {
    const names = [...textOf(path).matchAll(/`((?:src|roles|test|bench|scripts)\/[\w./-]+)`/g)];
    const missing = names.map(([, name = ""]) => name).filter((name) => !existsSync(name));
    expect(missing).toEqual([]);
  });
});

test("the index has every document", () => {
  const index = textOf("docs/README.md");
  const names = globSync("docs/*.md").map((path) => basename(path));
  expect(names.filter((name) => name !== "README.md" && !index.includes(`](${name})`))).toEqual([]);
});
