from muser_viz.cli import main

raise SystemExit(main())
