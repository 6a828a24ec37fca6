"""The paper's experiments and our own studies: one file each, one table of results.

    python -m experiments toy                        run one, print its claims, draw its figures
    python -m experiments r8 --quick --workers 2     a small version
    python -m experiments tables                     write the tables of docs/*.md from the results

An experiment is a module with

    TITLE              one line
    cases(quick)       what is run: data, arms and a loop (`core.protocol.Case`)
    CLAIMS             statements about the results, checked by `core.compare.Claim`
    figures(table, folder)    writes pictures from the table and returns their paths
    TABLES             optional: name -> function(table) -> rows of cells, tables of docs/*.md

A study that is not run any more has no module: its runs and tables are stored (`STORED` of
`experiments/__main__.py`).

Only public names of dmsgd are used here, and dmsgd uses nothing of this.
"""
