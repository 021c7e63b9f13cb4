import type { SandboxApi } from "./sandboxes.test-kit.ts";

/** The owner of what ann makes. */
export const ANN = "ann";

type Listed = { id?: string; image_id?: string } | string;

/** Ids on each page of a list, by its links. */
export async function pagesOf(
  { url }: Pick<SandboxApi, "url">,
  path: string,
  betweenPages?: () => Promise<void>,
): Promise<string[][]> {
  const pages: string[][] = [];
  for (let next: string | undefined = path; next !== undefined;) {
    const response: Response = await fetch(url + next, { headers: { Authorization: "Bearer ann" } });
    if (response.status !== 200) throw new Error(await response.text());
    const body = (await response.json()) as Listed[] | { images: Listed[] };
    pages.push((Array.isArray(body) ? body : body.images).map(idOf));
    next = /^<([^>]+)>; rel="next"$/.exec(response.headers.get("link") ?? "")?.[1];
    if (pages.length > 50) throw new Error("the pages do not end");
    if (pages.length === 1) await betweenPages?.();
  }
  return pages;
}

function idOf(item: Listed): string {
  return typeof item === "string" ? item : String(item.id ?? item.image_id);
}
