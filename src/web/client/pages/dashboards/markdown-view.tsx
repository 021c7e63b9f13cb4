import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { markdownBlocks, type Block, type Inline } from "./markdown.ts";

/** Markdown as elements. Headings begin below those of the page and of the panel. */
export function Markdown({ text }: { text: string }): JSX.Element {
  const blocks = useMemo(() => markdownBlocks(text), [text]);
  return <div class="markdown">{blocks.map(blockNode)}</div>;
}

/** Parts of a text have no identity besides their place. */
function blockNode(block: Block, index: number): JSX.Element {
  switch (block.kind) {
    case "heading": {
      const Heading = (["h3", "h4", "h5", "h6"] as const)[Math.min(block.level, 4) - 1] ?? "h6";
      return <Heading key={index}>{block.parts.map(inlineNode)}</Heading>;
    }
    case "paragraph":
      return <p key={index}>{block.parts.map(inlineNode)}</p>;
    case "code":
      return (
        <pre key={index}>
          <code>{block.text}</code>
        </pre>
      );
    case "quote":
      return <blockquote key={index}>{block.blocks.map(blockNode)}</blockquote>;
    case "rule":
      return <hr key={index} />;
    case "list": {
      const items = block.items.map(itemNode);
      return block.isOrdered ? (
        <ol key={index} start={block.start}>
          {items}
        </ol>
      ) : (
        <ul key={index}>{items}</ul>
      );
    }
  }
}

function itemNode(blocks: readonly Block[], index: number): JSX.Element {
  const [first, ...others] = blocks;
  if (first?.kind === "paragraph") {
    return (
      <li key={index}>
        {first.parts.map(inlineNode)}
        {others.map(blockNode)}
      </li>
    );
  }
  return <li key={index}>{blocks.map(blockNode)}</li>;
}

function inlineNode(part: Inline, index: number): JSX.Element {
  switch (part.kind) {
    case "text":
      return <>{part.text}</>;
    case "code":
      return <code key={index}>{part.text}</code>;
    case "strong":
      return <strong key={index}>{part.parts.map(inlineNode)}</strong>;
    case "emphasis":
      return <em key={index}>{part.parts.map(inlineNode)}</em>;
    case "break":
      return <br key={index} />;
    case "link":
      return (
        <a key={index} href={part.href} target="_blank" rel="noopener noreferrer nofollow">
          {part.parts.map(inlineNode)}
        </a>
      );
  }
}
