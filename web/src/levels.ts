// Level of detail: of what the page holds, what a stretch of time on a screen can show.

interface Cells {
    from_s: number;
    step_s: number;
}

/** The coarsest level with at least `cells` cells in the stretch, among those that cover it; else the finest of them. */
export function level_for<T extends Cells>(levels: readonly T[], length: (level: T) => number, from: number, to: number, cells: number): T | undefined {
    const slack = (to - from) * 0.02;
    const covering = levels.filter((level) => level.step_s > 0 && level.from_s <= from + Math.max(slack, level.step_s * 2) &&
        level.from_s + level.step_s * length(level) >= to - Math.max(slack, level.step_s * 2));
    const sorted = (covering.length ? covering : levels.slice(0, 1)).slice().sort((a, b) => b.step_s - a.step_s);
    return sorted.find((level) => (to - from) / level.step_s >= cells) ?? sorted.at(-1);
}

/** First and one past the last cell of a stretch, with one more on each side. */
export function cells_in(level: Cells, length: number, from: number, to: number): [number, number] {
    const first = Math.max(0, Math.floor((from - level.from_s) / level.step_s) - 1);
    return [first, Math.max(first, Math.min(length, Math.ceil((to - level.from_s) / level.step_s) + 1))];
}
