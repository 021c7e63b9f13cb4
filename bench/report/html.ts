import { escapeHtml } from "../../src/server/escape-html.ts";

/** Text of HTML that is safe to put into a page: literals of this program, and values that were escaped. */
export class Html {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

type Value = Html | string | number | null | undefined | readonly (Html | string)[];

/** HTML with values in it. Texts are escaped, for content and for attributes in double quotes; lists are joined. */
export function html(literals: TemplateStringsArray, ...values: readonly Value[]): Html {
  const texts = values.map(textOf);
  return new Html(literals.reduce((text, literal, i) => text + (texts[i - 1] ?? "") + literal));
}

function textOf(value: Value): string {
  if (value === undefined || value === null) return "";
  if (value instanceof Html) return value.text;
  if (typeof value === "object") return value.map(textOf).join("");
  return escapeHtml(String(value));
}

/**
 * A script element with data that `JSON.parse` reads. Inside it entities mean nothing and `</script>` or `<!--` would end
 * or bend it, so that `<` is written as an escape of JSON.
 */
export function jsonScript(id: string, data: unknown): Html {
  const text = JSON.stringify(data).replaceAll("<", String.raw`\u003c`);
  return html`<script type="application/json" id="${id}">
    ${new Html(text)}
  </script>`;
}
