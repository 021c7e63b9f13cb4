import { useLocation } from "preact-iso";
import type { JSX } from "preact";
import { toast } from "../../base/announce.ts";
import { copyText } from "../../base/copy-text.ts";
import { usePageAddress } from "../../base/schema.ts";
import { useMay } from "../../base/session.ts";
import { useMutation } from "../../base/use-query.ts";
import { Button } from "../../components/button.tsx";
import { ErrorBox } from "../../components/error-box.tsx";
import { Menu } from "../../components/menu.tsx";
import { PageHead } from "../../components/page-head.tsx";
import { createDashboard } from "./dashboard-api.ts";
import { contentOf, exportedText, type Content } from "./document.ts";
import { fileNameOf, saveFile } from "./save-file.ts";

type BoardHeadProps = {
  id: string;
  content: Content;
  isEditing: boolean;
  hasChanges: boolean;
  isSaving: boolean;
  onAdd: () => void;
  onOpen: (what: "settings" | "versions") => void;
  onEdit: () => void;
  /** Ends editing, without the changes. */
  onLeave: () => void;
  onSave: () => void;
  /** The changes are in a copy now. */
  onCopied: () => void;
};

/** The name of a dashboard, and what can be done with all of it. */
export function BoardHead(props: BoardHeadProps): JSX.Element {
  const { id, content, isEditing, hasChanges, isSaving, onAdd, onOpen, onEdit, onLeave, onSave, onCopied } = props;
  const { route } = useLocation();
  const addressOf = usePageAddress();
  const mayWrite = useMay("write");
  const copy = useMutation(async () => {
    return await createDashboard({ ...contentOf(content), name: `${content.name.slice(0, 190)} (copy)` });
  });
  const saveCopy = async (): Promise<void> => {
    const made = await copy.run(undefined);
    if (made === undefined) return;
    onCopied();
    toast(`Saved as ${made.name}`, "good");
    route(addressOf(`dashboards/${made.id}`));
  };
  return (
    <>
      <PageHead title={content.name} lead={content.description ?? undefined}>
        {isEditing ? (
          <>
            <Button icon="plus" onClick={onAdd}>
              Add a panel
            </Button>
            <Button onClick={() => onOpen("settings")}>Settings</Button>
            <Button onClick={onLeave}>{hasChanges ? "Discard" : "Done"}</Button>
            <Button
              look="primary"
              isBusy={isSaving}
              isDisabled={!hasChanges}
              reason="Nothing has changed."
              onClick={onSave}
            >
              Save
            </Button>
          </>
        ) : (
          <Button needs="write" onClick={onEdit}>
            {hasChanges ? "Go on editing" : "Edit"}
          </Button>
        )}
        <Menu
          label="More"
          items={[
            { id: "all", title: "All dashboards", run: () => route(addressOf("dashboards")) },
            { id: "link", title: "Copy the link", icon: "copy", run: () => void copyLink(hasChanges) },
            { id: "versions", title: "Versions", run: () => onOpen("versions") },
            {
              id: "export",
              title: "Export as a file",
              run: () => saveFile(fileNameOf(content.name), exportedText({ ...content, id })),
            },
            ...(mayWrite
              ? [
                  {
                    id: "copy",
                    title: "Save as a copy",
                    run: () => void saveCopy(),
                  },
                ]
              : []),
          ]}
        >
          More
        </Menu>
      </PageHead>
      {copy.error !== null && <ErrorBox title="The copy was not saved." error={copy.error} />}
    </>
  );
}

/** The address shows others what is seen here: range, variables and a panel that is shown alone, but not editing. */
async function copyLink(hasChanges: boolean): Promise<void> {
  const address = new URL(location.href);
  address.searchParams.delete("edit");
  if (!(await copyText(address.href))) return toast("The browser does not allow copying", "bad");
  toast(hasChanges ? "The link is copied. It shows what is saved, without your changes" : "The link is copied", "good");
}
