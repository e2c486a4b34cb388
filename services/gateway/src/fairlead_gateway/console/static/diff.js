// Reads a unified patch into rows with line numbers. Pure.

/** The rows of a patch: `{kind: "hunk" | "same" | "added" | "removed", old?, new?, text}`. */
export function parsePatch(patch) {
  const rows = [];
  let before = 0;
  let after = 0;
  let inside = false;
  for (const line of patch.replace(/\n$/, "").split("\n")) {
    const hunk = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@(.*)$/.exec(line);
    if (hunk) {
      [before, after, inside] = [Number(hunk[1]), Number(hunk[2]), true];
      rows.push({ kind: "hunk", text: line });
    } else if (!inside) continue;
    else if (line.startsWith("+")) rows.push({ kind: "added", new: after++, text: line.slice(1) });
    else if (line.startsWith("-")) rows.push({ kind: "removed", old: before++, text: line.slice(1) });
    else if (line.startsWith("\\")) rows.push({ kind: "hunk", text: line });
    else rows.push({ kind: "same", old: before++, new: after++, text: line.slice(1) });
  }
  return rows;
}
